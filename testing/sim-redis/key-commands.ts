/** Commands about keys and plain texts. */
import { ReplyError } from '../../src/store/redis/client/wire.ts';
import type { Command, CommandContext } from './command.ts';
import type { Database } from './database.ts';
import { globMatcher } from './glob.ts';
import { NotSimulatedError } from './lua-value.ts';
import { OK, readInteger, Status, syntaxError, type Value } from './value.ts';

/** The largest time Redis can hold. */
const MOST_MS = 2 ** 63 - 1;
const DEFAULT_SCAN_COUNT = 10;

function key(args: readonly string[]): string {
  return args[1] ?? '';
}

interface SetOptions {
  condition: '' | 'NX' | 'XX';
  isGet: boolean;
  keepsTtl: boolean;
  /** Absent where it is not to expire. */
  ttlMs?: number;
}

function readSetOptions(args: readonly string[]): SetOptions {
  const options: SetOptions = { condition: '', isGet: false, keepsTtl: false };
  for (let i = 3; i < args.length; i++) {
    const word = (args[i] ?? '').toUpperCase();
    const isLast = i === args.length - 1;
    if ((word === 'NX' || word === 'XX') && (options.condition || word) === word)
      options.condition = word;
    else if (word === 'GET') options.isGet = true;
    else if (word === 'KEEPTTL' && options.ttlMs === undefined) options.keepsTtl = true;
    else if (word === 'PX' && !options.keepsTtl && !isLast) options.ttlMs = readTtl(args, ++i);
    else if (/^(EX|EXAT|PXAT)$/.test(word)) throw new NotSimulatedError(`SET … ${word}`);
    else throw syntaxError();
  }
  if (Number.isNaN(options.ttlMs)) readInteger('');
  return options;
}

/** Not a number where it is none: that is only said once all options have been read. */
function readTtl(args: readonly string[], i: number): number {
  try {
    return readInteger(args[i]);
  } catch {
    return Number.NaN;
  }
}

function set({ database }: CommandContext, args: readonly string[]): Value {
  const { condition, isGet, keepsTtl, ttlMs } = readSetOptions(args);
  if (ttlMs !== undefined && (ttlMs <= 0 || database.nowMs + ttlMs > MOST_MS))
    throw new ReplyError("ERR invalid expire time in 'set' command");
  const old = isGet ? (database.read('string', key(args)) ?? null) : null;
  const found = database.find(key(args));
  if (condition !== '' && (condition === 'NX') === (found !== undefined)) return old;
  const keptMs = keepsTtl ? found?.expiresAtMs : undefined;
  const expiresAtMs = ttlMs === undefined ? (keptMs ?? Infinity) : database.nowMs + ttlMs;
  database.write(key(args), 'string', args[2] ?? '', expiresAtMs);
  return isGet ? old : OK;
}

function mget({ database }: CommandContext, args: readonly string[]): Value {
  return args.slice(1).map((name) => {
    const entry = database.find(name);
    return entry?.kind === 'string' ? (entry.content as string) : null;
  });
}

function count(args: readonly string[], isCounted: (name: string) => boolean): number {
  let found = 0;
  for (let i = 1; i < args.length; i++) if (isCounted(args[i] ?? '')) found++;
  return found;
}

function del({ database }: CommandContext, args: readonly string[]): Value {
  return count(args, (name) => database.find(name) !== undefined && database.remove(name));
}

function pttl({ database }: CommandContext, args: readonly string[]): Value {
  const entry = database.find(key(args));
  if (entry === undefined) return -2;
  return entry.expiresAtMs === Infinity ? -1 : entry.expiresAtMs - database.nowMs;
}

/** What is to expire in the past is gone at once. */
function expire(database: Database, name: string, atMs: number): number {
  const entry = database.find(name);
  if (entry === undefined) return 0;
  if (atMs <= database.nowMs) database.remove(name);
  else database.expireAt(entry, atMs);
  return 1;
}

function pexpire(fromNow: boolean): Command['run'] {
  return ({ database }, args) => {
    const ms = readInteger(args[2]);
    const atMs = fromNow ? database.nowMs + ms : ms;
    const isTooFar = Math.abs(atMs) > MOST_MS;
    if (args.length > 3) throw new NotSimulatedError(`${args[0]} … ${args[3]}`);
    if (isTooFar)
      throw new ReplyError(`ERR invalid expire time in '${args[0]?.toLowerCase()}' command`);
    return expire(database, key(args), atMs);
  };
}

function persist({ database }: CommandContext, args: readonly string[]): Value {
  const entry = database.find(key(args));
  if (entry === undefined || entry.expiresAtMs === Infinity) return 0;
  database.expireAt(entry, Infinity);
  return 1;
}

interface ScanOptions {
  isMatch(name: string): boolean;
  count: number;
  kind?: string;
}

function readScanOptions(args: readonly string[]): ScanOptions {
  const options: ScanOptions = { isMatch: () => true, count: DEFAULT_SCAN_COUNT };
  for (let i = 2; i < args.length; i += 2) {
    const word = (args[i] ?? '').toUpperCase();
    const value = args[i + 1];
    if (value === undefined) throw syntaxError();
    if (word === 'MATCH') options.isMatch = globMatcher(value);
    else if (word === 'TYPE') options.kind = value.toLowerCase();
    else if (word === 'COUNT') {
      options.count = readInteger(value);
      if (options.count < 1) throw syntaxError();
    } else throw syntaxError();
  }
  return options;
}

/**
 * The cursor is the serial of the last key looked at: what is there from begin to end is met,
 * whatever comes and goes.
 */
function scan({ database }: CommandContext, args: readonly string[]): Value {
  const after = Number(/^\d+$/.test(key(args)) ? key(args) : Number.NaN);
  if (Number.isNaN(after)) throw new ReplyError('ERR invalid cursor');
  const options = readScanOptions(args);
  const names: string[] = [];
  let seen = 0;
  let last = 0;
  for (const [name, { serial, kind }] of database.walk()) {
    if (serial <= after) continue;
    if (seen === options.count) return [String(last), names];
    seen++;
    last = serial;
    if (options.isMatch(name) && (options.kind ?? kind) === kind) names.push(name);
  }
  return ['0', names];
}

export const KEY_COMMANDS: Readonly<Record<string, Command>> = {
  SET: { arity: -3, writes: 'grow', run: set },
  GET: { arity: 2, run: ({ database }, args) => database.read('string', key(args)) ?? null },
  MGET: { arity: -2, run: mget },
  DEL: { arity: -2, writes: 'shrink', run: del },
  UNLINK: { arity: -2, writes: 'shrink', run: del },
  EXISTS: {
    arity: -2,
    run: ({ database }, args) => count(args, (name) => database.find(name) !== undefined),
  },
  TYPE: {
    arity: 2,
    run: ({ database }, args) => new Status(database.find(key(args))?.kind ?? 'none'),
  },
  PTTL: { arity: 2, run: pttl },
  PEXPIRE: { arity: -3, writes: 'shrink', run: pexpire(true) },
  PEXPIREAT: { arity: -3, writes: 'shrink', run: pexpire(false) },
  PERSIST: { arity: 2, writes: 'shrink', run: persist },
  SCAN: { arity: -2, run: scan },
  DBSIZE: { arity: 1, run: ({ database }) => [...database.walk()].length },
};
