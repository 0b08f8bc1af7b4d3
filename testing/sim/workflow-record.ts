/** What the store must know of one workflow, told from the commands that it has carried out. */

/** An action whose result is not in. */
export interface Unresolved {
  readonly target: string;
  epoch: number;
  /** When it was last emitted. */
  sinceMs: number;
}

/** What is in a processor's hands, or was last. */
export interface Hand {
  readonly fence: number;
  readonly action: string;
  /** With which it was given out; -1 where nobody saw that. */
  readonly epoch: number;
  /** It was given back, to be tried again. */
  isGivenBack: boolean;
}

export interface Update {
  readonly epoch: number;
  readonly leaseId: string;
  readonly state: string;
}

export class WorkflowRecord {
  readonly id: string;
  /** What the next step has to have. */
  epoch = 0;
  tenure: string | null = null;
  /** Whether that tenure has begun, or was only handed over. */
  isBegun = false;
  isRevoked = false;
  /** To whom it was handed over, and nobody has begun since. */
  successor: string | null = null;
  /** The last step, if it was one that can be sent twice. */
  update: Update | null = null;
  /** Some of what the store knew of it was deleted by hand: what is left need not fit together. */
  isDamaged = false;
  readonly actions = new Map<string, Unresolved>();
  /** When each result came in. */
  readonly results = new Map<string, number>();
  /** By target. */
  readonly hands = new Map<string, Hand>();
  beganMs = 0;
  /** When its orchestrator took a step last. */
  steppedMs = 0;

  constructor(id: string) {
    this.id = id;
  }
}

/** How a script keeps an unresolved action: lines of text. */
export function partsOf(record: string): { epoch: number; leaseId: string; target: string } {
  const [epoch = '', leaseId = '', target = ''] = record.split('\n', 3);
  return { epoch: Number(epoch), leaseId, target };
}

/** From a list of ids and records. */
export function pairsOf(list: readonly unknown[]): [id: string, record: string][] {
  return Array.from({ length: list.length / 2 }, (_, i) => [
    String(list[2 * i]),
    String(list[2 * i + 1]),
  ]);
}
