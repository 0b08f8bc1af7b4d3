/**
 * Holds handovers to this: a member that nothing is wrong with takes what it is handed, in a
 * quarantine, too. A target that it would not take must not be handed to it: no instance would work
 * on it meanwhile.
 */

/** A target that was handed to a member. */
export interface Offer {
  readonly key: string;
  readonly successor: string;
  readonly atMs: number;
  /** By when the successor should have claimed it. */
  readonly dueMs: number;
  /** It was granted since, to any holder. */
  isClaimed: boolean;
}

/** What is known of the world around a handover. */
export interface Surroundings {
  /** For how long nothing has been wrong. */
  quietForMs(): number;
  /** Whether this holder runs, and has no work that does not stop when it is told to. */
  isWell(holder: string): boolean;
}

const POLLED = 'poll:lease:';
/** So long before its time is up a successor should have claimed. */
const MARGIN_MS = 200;
/**
 * What was wrong may have after-effects for so long: connections that are made again, answers that
 * come late.
 */
const AFTER_EFFECTS_MS = 2_000;
/**
 * Who was not told that the store has lost keys may hand over in an era that is over for those who
 * were: for so long at most.
 */
const UNNOTICED_MS = 180_000;

export class HandoverAudit {
  readonly #nowMs: () => number;
  readonly #report: (target: string, text: string) => void;
  /** In the order in which they are due. */
  readonly #offers: Offer[] = [];
  #unnoticedUntilMs = 0;
  /** Until it is told of any, it takes everything for wrong. */
  surroundings: Surroundings = { quietForMs: () => 0, isWell: () => false };

  constructor(nowMs: () => number, report: (target: string, text: string) => void) {
    this.#nowMs = nowMs;
    this.#report = report;
  }

  /** The store has lost keys, and no connection broke. */
  storeForgotUnnoticed(): void {
    this.#unnoticedUntilMs = this.#nowMs() + UNNOTICED_MS;
  }

  offered(key: string, successor: string, windowMs: number): Offer {
    const atMs = this.#nowMs();
    const offer = { key, successor, atMs, dueMs: atMs + windowMs - MARGIN_MS, isClaimed: false };
    if (key.startsWith(POLLED)) this.#offers.push(offer);
    return offer;
  }

  /** After everything that happens. */
  settled(): void {
    const nowMs = this.#nowMs();
    while ((this.#offers[0]?.dueMs ?? Number.POSITIVE_INFINITY) <= nowMs)
      this.#check(this.#offers.shift() as Offer, nowMs);
  }

  #check({ key, successor, atMs, isClaimed }: Offer, nowMs: number): void {
    const { quietForMs, isWell } = this.surroundings;
    if (nowMs < this.#unnoticedUntilMs) return;
    if (isClaimed || !isWell(successor) || quietForMs() < nowMs - atMs + AFTER_EFFECTS_MS) return;
    const text = `${successor} was handed ${key} and has not claimed it in ${Math.round(nowMs - atMs)} ms`;
    this.#report(key.replace(POLLED, 'poll:'), text);
  }
}
