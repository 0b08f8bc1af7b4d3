/**
 * What `holdfast run` and its supervisor say to each other: JSON, a line each, over a pipe for orders and one for
 * reports. The end of a pipe says that the other one is no more.
 */

import type { Moment } from './host.ts';

export type Order =
  | {
      readonly do: 'start';
      readonly command: readonly string[];
      /** Beside the environment that the supervisor has itself. */
      readonly env: Readonly<Record<string, string>>;
      readonly deadline: Moment;
      readonly graceMs: number;
    }
  /** The lease was renewed: the command may run until then. */
  | { readonly do: 'extend'; readonly deadline: Moment }
  | { readonly do: 'signal'; readonly signal: NodeJS.Signals }
  /** The lease is lost: stop the command. */
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
}

export type Report =
  | { readonly event: 'started'; readonly group: number }
  /** It could not be started. */
  | { readonly event: 'failed'; readonly error: string }
  | Ended;

export function encode(message: Order | Report): string {
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
