/**
 * Kinds of sessions. `live` and `vod` are built in. Further kinds are declared, once for the
 * processes that accept intents and the workers that run them.
 *
 * The process that accepts a start validates `params`, and decides `exclusive`, `same` and
 * `priority`. The worker decides `pool`, `run`, `timeLimit` and `tries`. So a change of either part
 * counts from the restart of that process, and sessions that were accepted before keep their key.
 */
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkTargetId } from '../core/ids.ts';
import { isSchema, type Schema } from '../core/schema.ts';
import type { GuardableTransaction } from '../lease/guard.ts';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../store/port/stream-store.ts';

/** The rest of a start, beside its `params`. */
export interface StartFacts {
  /** The key that the request names; null: it names none. */
  readonly key: string | null;
  readonly tenant: string;
}

/** What a function that runs for a session is given, beside the `params`. */
export interface KindContext {
  /**
   * Fires when the function has to end: the session is stopped, a lease is lost, the time limit is
   * over, or the worker stops.
   */
  readonly signal: AbortSignal;
  /** The fence of the slot, or of the session's own lease if it needs no slot. */
  readonly fence: number;
  /** The name of the slot; null if the kind needs none. */
  readonly slot: string | null;
  readonly session: {
    readonly id: string;
    readonly kind: string;
    readonly key: string;
    readonly tenant: string;
  };
  /** 1 for the first try of this session. */
  readonly attempt: number;
  /** Throws if the function may not continue. Call it before every step that matters. */
  assertHeld(): void;
  /** PostgreSQL: ties a transaction of yours to all leases of the session. See `Lease.guard`. */
  guard(transaction: GuardableTransaction): Promise<void>;
  /**
   * Reports how far the function is: a short value that can be JSON. The last one counts, and is
   * written at most once a second.
   */
  progress(value: unknown): void;
}

/**
 * Runs for a session. Its result is kept with the session, if it can be JSON. It has to end when
 * `signal` fires: no lease is released before that.
 */
// A method, because methods are compared in both directions: so a list may have several kinds.
export type KindFunction<P = unknown> = {
  run(params: P, context: KindContext): unknown;
}['run'];

export interface KindCommand {
  /**
   * A program and its arguments. No shell reads them. The command reads `params` as JSON from file
   * descriptor 3.
   */
  readonly command: readonly string[];
  /** Added to the worker's own environment and the variables about the session. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
}

export interface KindOptions<P = unknown> {
  /** The schema of `params`: any Standard Schema. Default: any object. */
  params?: Schema<unknown, P> | undefined;
  /**
   * Two sessions of this kind with the same text never run at the same time. Default: the key of
   * the request; without a key, sessions exclude nothing.
   */
  exclusive?(params: P, start: StartFacts): string;
  /**
   * Two starts with equal values are the same request: the second one finds the session of the
   * first, while it has not ended. Any value that can be JSON. Default: the key and all `params`.
   */
  same?(params: P, start: StartFacts): unknown;
  /** The pool that a session needs a slot of; default null: none. */
  pool?: string | null | undefined;
  /** Starts with a higher number go first: 1 to 10, default 5. */
  priority?: number | undefined;
  /** How long one try may run; default: no limit. */
  timeLimit?: Duration | undefined;
  /**
   * How often a session is tried: failures, time limits and lost workers count. Default: a failure
   * ends the session, and a session of a lost worker is started again, up to three times.
   */
  tries?: number | undefined;
  /** What a worker runs. Default: this process only accepts intents of the kind. */
  run?: KindFunction<P> | KindCommand | undefined;
}

/** By name. */
export type KindDeclarations = Readonly<Record<string, KindOptions>>;

/** A declared kind, checked and with its defaults. */
export interface Kind {
  readonly name: string;
  readonly params: Schema | null;
  readonly exclusive: ((params: unknown, start: StartFacts) => unknown) | null;
  readonly same: ((params: unknown, start: StartFacts) => unknown) | null;
  readonly pool: string | null;
  readonly priority: number;
  readonly timeLimitMs: number | null;
  readonly tries: number | null;
  readonly run: KindFunction | KindCommand | null;
}

/** The kinds that Holdfast has before any is declared. */
export const BUILT_IN_KINDS = ['live', 'vod'] as const;
export const DEFAULT_PRIORITY = 5;

const KNOWN = new Set([
  'params',
  'exclusive',
  'same',
  'pool',
  'priority',
  'timeLimit',
  'tries',
  'run',
]);
const KNOWN_OF_COMMAND = new Set(['command', 'env', 'cwd']);
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;
export const KIND_NAME_RULE =
  'the name of a kind is 1 to 32 letters, digits, - and _, and begins with a letter';
/** `poll` is how targets are listed beside sessions. */
const RESERVED: ReadonlySet<string> = new Set([...BUILT_IN_KINDS, 'poll']);
const MAX_TRIES = 1_000;

/** Types the functions of one declaration by its schema. Returns its argument. */
export function defineKind<P = Readonly<Record<string, unknown>>>(
  kind: KindOptions<P>,
): KindOptions<P> {
  return kind;
}

export function isKindName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value);
}

/** Throws `CONFIG_INVALID` for an invalid declaration. */
export function readKinds(declared: KindDeclarations = {}): ReadonlyMap<string, Kind> {
  if (typeof declared !== 'object' || declared === null)
    return refuse('kinds', declared, 'it must be an object: the kinds by name');
  return new Map(Object.entries(declared).map(([name, option]) => [name, kindOf(name, option)]));
}

function kindOf(name: string, option: KindOptions): Kind {
  const field = `kinds.${name}`;
  if (!isKindName(name)) refuse(field, name, KIND_NAME_RULE);
  if (RESERVED.has(name))
    refuse(field, name, 'this name is taken. Declare the kind under another name');
  if (typeof option !== 'object' || option === null)
    refuse(field, option, 'it must be an object, such as { run: async (params) => … }');
  checkFields(field, option, KNOWN);
  const { params, exclusive, same, pool = null, priority = DEFAULT_PRIORITY } = option;
  const { timeLimit, tries, run } = option;
  if (params !== undefined && !isSchema(params))
    refuse(`${field}.params`, params, 'it must be a Standard Schema, such as z.object({ … })');
  for (const [part, value] of Object.entries({ exclusive, same }))
    if (value !== undefined && typeof value !== 'function')
      refuse(`${field}.${part}`, value, 'it must be a function of params');
  if (pool !== null) checkTargetId(pool, `${field}.pool`);
  checkWhole(`${field}.priority`, priority, LOWEST_PRIORITY, HIGHEST_PRIORITY);
  if (tries !== undefined) checkWhole(`${field}.tries`, tries, 1, MAX_TRIES);
  return {
    name,
    params: params ?? null,
    exclusive: exclusive?.bind(option) ?? null,
    same: same?.bind(option) ?? null,
    pool,
    priority,
    timeLimitMs: timeLimit === undefined ? null : timeLimitOf(`${field}.timeLimit`, timeLimit),
    tries: tries ?? null,
    run: run === undefined ? null : runOf(`${field}.run`, run),
  };
}

function timeLimitOf(field: string, timeLimit: Duration): number {
  const ms = durationMs(timeLimit, field);
  return ms > 0 ? ms : refuse(field, timeLimit, 'it must be longer than 0');
}

function runOf(field: string, run: KindFunction | KindCommand): KindFunction | KindCommand {
  if (typeof run === 'function') return run;
  if (typeof run !== 'object' || run === null)
    return refuse(field, run, "it must be a function, or { command: ['program', 'argument', …] }");
  checkFields(field, run, KNOWN_OF_COMMAND);
  checkCommand(`${field}.command`, run.command);
  return run;
}

/** Throws unless it is a program and its arguments. */
export function checkCommand(field: string, command: unknown): void {
  const isCommand =
    Array.isArray(command) &&
    command.length > 0 &&
    command.every((part) => typeof part === 'string');
  if (!isCommand || command[0] === '')
    refuse(field, command, "it must be a program and its arguments: ['ffmpeg', '-i', …]");
}

function checkFields(field: string, value: object, known: ReadonlySet<string>): void {
  for (const name of Object.keys(value))
    if (!known.has(name))
      refuse(`${field}.${name}`, name, `unknown option. Known options: ${[...known].join(', ')}`);
}

function checkWhole(field: string, value: unknown, from: number, to: number): void {
  const isValid = Number.isInteger(value) && (value as number) >= from && (value as number) <= to;
  if (!isValid) refuse(field, value, `it must be a whole number from ${from} to ${to}`);
}

function refuse(field: string, value: unknown, rule: string): never {
  throw new ConfigError({ field, value, rule });
}
