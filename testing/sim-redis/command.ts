import type { Database } from './database.ts';
import type { Value } from './value.ts';

/** What a command works on. */
export interface CommandContext {
  readonly database: Database;
  /** Sends to all subscribers, and returns how many there are. */
  publish(channel: string, message: string): number;
}

export interface Command {
  /** With how many words, its name included; negative for at least so many. */
  readonly arity: number;
  /** `grow` where it may need memory: refused when there is none. */
  readonly writes?: 'shrink' | 'grow';
  readonly isForLoading?: boolean;
  /** Errors are thrown, as `ReplyError`. */
  run(context: CommandContext, args: readonly string[]): Value;
}

export function hasArity(arity: number, args: readonly string[]): boolean {
  return arity < 0 ? args.length >= -arity : args.length === arity;
}
