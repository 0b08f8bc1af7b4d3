/**
 * The record of a target: plain JSON under `session:<id>`, so that other programs can write it too.
 * An invalid record is no error but an `InvalidRecord`: it is reported, and the other targets
 * continue.
 */
import { durationMs } from '../../core/duration.ts';
import { isTargetId, TARGET_ID_RULE } from '../../core/ids.ts';
import { DEFAULT_COMMAND } from '../plan/plan.ts';

export const TARGET_KINDS = ['poll', 'live', 'vod'] as const;
export type TargetKind = (typeof TARGET_KINDS)[number];

/** `uuid`: only UUIDs are ids of targets. */
export type TargetIds = 'any' | 'uuid';

export interface TargetRecord {
  readonly id: string;
  readonly kind: TargetKind;
  readonly url?: string | undefined;
  readonly everyMs?: number | undefined;
  /** How long one poll may take; default: the poller's `timeout`. */
  readonly timeoutMs?: number | undefined;
  /** The name of a command that instances have declared. Never the command itself. */
  readonly command?: string | undefined;
  readonly isPaused: boolean;
  /** The other fields of the record. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly revision: number;
}

/** Why a record is invalid. It names the field, and never repeats its value. */
export class InvalidRecord {
  readonly field: string;
  readonly rule: string;

  constructor(field: string, rule: string) {
    this.field = field;
    this.rule = rule;
  }

  get why(): string {
    return `${this.field}: ${this.rule}`;
  }
}

/** The collection of the records, and the topic that announces its changes. */
export const TARGET_COLLECTION = 'session';
export const TARGET_TOPIC = 'sessions';
/** The collection of the last poll results, by the target's id. */
export const RESULT_COLLECTION = 'result';

/** Shorter is a stream and not a poll; longer, and it would not be noticed that polls stopped. */
export const MIN_EVERY_MS = 100;
export const MAX_EVERY_MS = 24 * 3_600_000;
const MAX_URL_CHARS = 8_192;
/** Of JSON: tens of thousands of records are kept in memory. */
const MAX_RECORD_CHARS = 65_536;

/** The names of each field: ours first, then those that programs in other languages write. */
const NAMES = {
  id: ['id', 'ID', 'sessionId'],
  kind: ['kind'],
  url: ['url', 'URL'],
  every: ['everyMs', 'every', 'intervalMs'],
  timeout: ['timeoutMs', 'timeout'],
  command: ['command'],
  isPaused: ['isPaused', 'is_paused', 'IsPaused', 'paused'],
} as const;

const KNOWN = new Set<string>(Object.values(NAMES).flat());
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Shared by all targets without other fields. */
const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});

type Fields = Readonly<Record<string, unknown>>;

export function readTargetRecord(
  id: string,
  value: unknown,
  revision: number,
  ids: TargetIds = 'any',
): TargetRecord | InvalidRecord {
  const idWhy = idProblem(id, ids);
  if (idWhy !== null) return new InvalidRecord('id', idWhy);
  if (!isFields(value)) return new InvalidRecord('session', 'it is no JSON object');
  const named = pick(value, NAMES.id, (text) => (text === id ? id : undefined), OTHER_ID);
  if (named instanceof InvalidRecord) return named;
  const kind = pick(value, NAMES.kind, asKind, `it must be one of ${TARGET_KINDS.join(', ')}`);
  if (kind instanceof InvalidRecord) return kind;
  const url = pick(
    value,
    NAMES.url,
    asUrl,
    `it must be text of at most ${MAX_URL_CHARS} characters`,
  );
  if (url instanceof InvalidRecord) return url;
  const everyMs = readEveryMs(value);
  if (everyMs instanceof InvalidRecord) return everyMs;
  const timeoutMs = readTimeoutMs(value);
  if (timeoutMs instanceof InvalidRecord) return timeoutMs;
  const command = readCommand(value);
  if (command instanceof InvalidRecord) return command;
  const isPaused = pick(value, NAMES.isPaused, asBoolean, 'it must be true or false');
  if (isPaused instanceof InvalidRecord) return isPaused;
  const data = dataOf(value);
  if (data instanceof InvalidRecord) return data;
  return {
    id,
    kind: kind ?? 'poll',
    url,
    everyMs,
    timeoutMs,
    command,
    isPaused: isPaused ?? false,
    data,
    revision,
  };
}

/** How often a target with these fields is polled; undefined where they do not say. */
export function readEveryMs(fields: Fields): number | undefined | InvalidRecord {
  return pick(fields, NAMES.every, asEveryMs, EVERY_RULE);
}

/** How long one poll of a target with these fields may take; undefined where they do not say. */
export function readTimeoutMs(fields: Fields): number | undefined | InvalidRecord {
  return pick(fields, NAMES.timeout, asEveryMs, TIMEOUT_RULE);
}

/** The name of the command that a target with these fields needs. */
export function readCommand(fields: Fields): string | undefined | InvalidRecord {
  return pick(fields, NAMES.command, asCommandName, COMMAND_NAME_RULE);
}

/** The record that a target is stored as. */
export function recordOf(target: TargetRecord): Fields {
  const { id, kind, url, everyMs, timeoutMs, command, isPaused, data } = target;
  return { id, kind, url, everyMs, timeoutMs, command, isPaused, ...data };
}

/** The record, paused or not, with everything else as it was, under the name that it uses. */
export function withPaused(record: unknown, isPaused: boolean): Fields {
  const fields = isFields(record) ? record : {};
  const present = NAMES.isPaused.filter((name) => Object.hasOwn(fields, name));
  const names = present.length === 0 ? [NAMES.isPaused[0]] : present;
  return { ...fields, ...Object.fromEntries(names.map((name) => [name, isPaused])) };
}

/**
 * The record with these fields and everything else as it was. `null` removes a field; an undefined
 * one stays. Drops other names of the fields.
 */
export function withFields(record: unknown, fields: Fields): Fields {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const names = new Set(given.map(([name]) => name));
  const isGiven = (same: readonly string[]) => same.some((name) => names.has(name));
  const replaced = new Set([
    ...names,
    ...Object.values<readonly string[]>(NAMES).filter(isGiven).flat(),
  ]);
  const before = Object.entries(isFields(record) ? record : {});
  return Object.fromEntries([
    ...before.filter(([name]) => !replaced.has(name)),
    ...given.filter(([, value]) => value !== null),
  ]);
}

/** Why this cannot be the id of a target, or null. */
export function idProblem(id: unknown, ids: TargetIds): string | null {
  if (!isTargetId(id)) return TARGET_ID_RULE;
  return ids === 'uuid' && !UUID.test(id) ? 'only UUIDs are valid here' : null;
}

const COMMAND_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;
export const COMMAND_NAME_RULE =
  "the name of a command is 1 to 32 letters, digits, - and _, begins with a letter, and is not 'default'";

/** Whether a command may have this name. A target without one needs the command `default`. */
export function isCommandName(name: unknown): name is string {
  return typeof name === 'string' && COMMAND_NAME.test(name) && name !== DEFAULT_COMMAND;
}

const OTHER_ID = 'it is not the id that the record is stored under';
const TIMEOUT_RULE =
  "a poll may take from 100 ms to 24 h, as milliseconds or as text such as '250ms', '30s', '5m'";
const EVERY_RULE =
  "an interval is from 100 ms to 24 h, as milliseconds or as text such as '250ms', '30s', '5m'";

/**
 * The field, under any of its names; undefined where it is absent or null. Two names with different
 * values are invalid: choosing one would be a guess.
 */
function pick<T>(
  fields: Fields,
  names: readonly string[],
  as: (value: unknown) => T | undefined,
  rule: string,
): T | undefined | InvalidRecord {
  let found: T | undefined;
  for (const name of names) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === null) continue;
    const read = as(value);
    if (read === undefined) return new InvalidRecord(name, rule);
    if (found !== undefined && found !== read)
      return new InvalidRecord(name, 'the record has it twice, with different values');
    found = read;
  }
  return found;
}

function asKind(value: unknown): TargetKind | undefined {
  return TARGET_KINDS.find((kind) => kind === value);
}

function asUrl(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= MAX_URL_CHARS ? value : undefined;
}

function asCommandName(value: unknown): string | undefined {
  return isCommandName(value) ? value : undefined;
}

function asBoolean(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

function asEveryMs(value: unknown): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  try {
    const everyMs = durationMs(value, 'every');
    return everyMs >= MIN_EVERY_MS && everyMs <= MAX_EVERY_MS ? everyMs : undefined;
  } catch {
    return undefined;
  }
}

/** The rest of the record. A key such as `__proto__` becomes a field like any other. */
function dataOf(fields: Fields): Fields | InvalidRecord {
  const rest = Object.entries(fields).filter(([name]) => !KNOWN.has(name));
  if (rest.length === 0) return NOTHING;
  const data = Object.fromEntries(rest);
  return isWithin(data, MAX_RECORD_CHARS)
    ? data
    : new InvalidRecord('session', `it must be JSON of at most ${MAX_RECORD_CHARS} characters`);
}

function isWithin(data: Fields, most: number): boolean {
  try {
    return JSON.stringify(data).length <= most;
  } catch {
    return false;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
