/**
 * What those who run commands and their supervisor say to each other: JSON, a line each, over a pipe for orders and one
 * for reports. Each is about one command, by the number that whoever orders it has given it. The end of a pipe says that
 * the other one is no more.
 */
import type { CommandDeadline } from './command-validity.ts';

/** What is to be run, and how. */
export interface Start {
  readonly command: readonly string[];
  /** Beside the environment that the supervisor has itself. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  readonly deadline: CommandDeadline;
  readonly graceMs: number;
  /** Input and outputs are those of the supervisor; else there is nothing to read, and what it writes is read by the supervisor. */
  readonly isInherited: boolean;
}

export type Order =
  | ({ readonly do: 'start' } & Start)
  /** Its process group is on record: the command may begin. */
  | { readonly do: 'begin' }
  /** The lease was renewed: the command may run until then. */
  | { readonly do: 'extend'; readonly deadline: CommandDeadline }
  | { readonly do: 'signal'; readonly signal: NodeJS.Signals }
  /** The lease is lost, or nobody needs it any more: stop the command. */
  | { readonly do: 'stop' };

/** Why the command is no longer running. */
export type EndReason =
  /** It ended by itself. */
  | 'done'
  /** Nothing was heard of a renewal before the deadline. */
  | 'deadline'
  /** There was an order to stop it. */
  | 'ordered'
  /** Whoever gave the orders is no more. */
  | 'orphaned'
  /** The supervisor itself was told to end. */
  | 'terminated';

export interface Ended {
  readonly event: 'ended';
  readonly why: EndReason;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Some of its processes could not be ended: they run as another user, or hang in the kernel. */
  readonly survivors: boolean;
  /** The last lines that it wrote; none where its outputs are inherited. */
  readonly output: readonly string[];
}

export interface Failed {
  readonly event: 'failed';
  /** The code of the system's error. */
  readonly error: string;
}

export type Report =
  /** Its processes are there, and wait for the order to begin: see `gate.ts`. */
  | { readonly event: 'started'; readonly group: number; readonly startedTicks: number | null }
  | { readonly event: 'progress'; readonly text: string }
  /** The clocks disagree: whoever holds the leases has to have them confirmed at once. */
  | { readonly event: 'doubt' }
  /** It could not be started. */
  | Failed
  | Ended;

/** Says which command it is about. */
export type About<M extends Order | Report> = M & { readonly id: number };

export function encode(message: About<Order> | About<Report>): string {
  return `${JSON.stringify(message)}\n`;
}

/** Gives a function to feed with what arrives, which calls `hear` for each whole line. */
export function decoder<M>(hear: (message: M) => void): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) hear(JSON.parse(line) as M);
  };
}
