/**
 * What the process that runs commands, and their supervisor, send each other: lines of JSON, over a
 * pipe for orders and a pipe for reports. Each line is about one command, by the number that the
 * ordering process gave it. The end of a pipe means that the other process is gone.
 */
import type { CommandDeadline } from './command-deadline.ts';

/** The command to run, and how to run it. */
export interface Start {
  readonly command: readonly string[];
  /** Added to the environment of the supervisor. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /** The text that the command reads from file descriptor 3; absent: it has no such descriptor. */
  readonly params?: string | undefined;
  readonly deadline: CommandDeadline;
  readonly graceMs: number;
  /**
   * The command has the input and outputs of the supervisor. Otherwise it has no input, and the
   * supervisor reads its outputs.
   */
  readonly isInherited: boolean;
}

export type Order =
  | ({ readonly do: 'start' } & Start)
  /** The process group of the command is on record: the command may begin. */
  | { readonly do: 'begin' }
  /** A lease was renewed: the command may run until then. */
  | { readonly do: 'extend'; readonly deadline: CommandDeadline }
  | { readonly do: 'signal'; readonly signal: NodeJS.Signals }
  /** A lease is lost, or the command is not needed any more: stop it. */
  | { readonly do: 'stop' };

/** Why the command is no longer running. */
export type EndReason =
  /** It ended by itself. */
  | 'done'
  /** No renewal arrived before the deadline. */
  | 'deadline'
  /** There was an order to stop it. */
  | 'ordered'
  /** The process that gave the orders is gone. */
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
  /** The last lines that it wrote; none if its outputs are inherited. */
  readonly output: readonly string[];
}

export interface Failed {
  readonly event: 'failed';
  /** The code of the system's error. */
  readonly error: string;
}

export type Report =
  /** The processes of the command exist, and wait for the order to begin: see `gate.ts`. */
  | { readonly event: 'started'; readonly group: number; readonly startedTicks: number | null }
  | { readonly event: 'progress'; readonly text: string }
  /** The two clocks disagree: the holder has to have its leases confirmed at once. */
  | { readonly event: 'doubt' }
  /** The command could not be started. */
  | Failed
  | Ended;

/** A message with the number of its command. */
export type About<M extends Order | Report> = M & { readonly id: number };

export function encode(message: About<Order> | About<Report>): string {
  return `${JSON.stringify(message)}\n`;
}

/** Returns a function that takes what arrives, and calls `receive` for each whole line. */
export function decoder<M>(receive: (message: M) => void): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) receive(JSON.parse(line) as M);
  };
}
