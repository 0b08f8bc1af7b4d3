/** Commands about streams, with ids that their writers choose, or the time does. */
import { ReplyError } from '../../src/store/redis/client/wire.ts';
import type { Command, CommandContext } from './command.ts';
import type { Database } from './database.ts';
import { NotSimulatedError } from './lua-value.ts';
import { compareIds, NO_ID, Stream, type StreamEntry, type StreamId } from './stream.ts';
import { readInteger, syntaxError, type Value } from './value.ts';

const INVALID_ID = 'ERR Invalid stream ID specified as stream command argument';
/**
 * Ids are 64 bits in Redis; ours are far below 2⁵³, and so is what this simulation is exact for.
 */
const ID = /^[ \t-\r]*\+?(\d{1,19})(?:-[ \t-\r]*\+?(\d{1,19}))?$/;

/** `missing` is what stands for a second part that is left out. */
function readId(text: string, missing: number): StreamId {
  const [, ms, number] = ID.exec(text) ?? [];
  if (ms === undefined) throw new ReplyError(INVALID_ID);
  return { ms: Number(ms), number: number === undefined ? missing : Number(number) };
}

function idText({ ms, number }: StreamId): string {
  return `${ms}-${number}`;
}

function xadd({ database }: CommandContext, args: readonly string[]): Value {
  const [, key = ''] = args;
  const kept = args[2]?.toUpperCase() === 'MAXLEN' ? readKept(args[3] ?? '') : Infinity;
  const [idWord = '', ...fields] = args.slice(kept === Infinity ? 2 : 4);
  if (/^(NOMKSTREAM|MAXLEN|MINID|LIMIT|\d+-\*)$/i.test(idWord))
    throw new NotSimulatedError(`XADD … ${idWord}`);
  const given = idWord === '*' ? null : readId(idWord, 0);
  if (fields.length < 2 || fields.length % 2 !== 0)
    throw new ReplyError("ERR wrong number of arguments for 'xadd' command");
  if (given !== null && compareIds(given, NO_ID) === 0)
    throw new ReplyError('ERR The ID specified in XADD must be greater than 0-0');
  const stream = database.open('stream', key, () => new Stream());
  const { lastId } = stream;
  const id = given ?? nextId(lastId, database.nowMs);
  if (compareIds(id, lastId) <= 0)
    throw new ReplyError(
      'ERR The ID specified in XADD is equal or smaller than the target stream top item',
    );
  stream.append({ id, fields });
  database.journal.note(() => stream.retract(lastId));
  while (stream.length > kept) remove(database, stream, stream.firstId);
  return idText(id);
}

/** The time, unless that is not after the last. */
function nextId(last: StreamId, nowMs: number): StreamId {
  return nowMs > last.ms ? { ms: nowMs, number: 0 } : { ms: last.ms, number: last.number + 1 };
}

/** Whether there was such an entry. */
function remove(database: Database, stream: Stream, id: StreamId): boolean {
  const putBack = stream.remove(id);
  if (putBack !== null) database.journal.note(putBack);
  return putBack !== null;
}

/** A stream stays, with the last id it had, even when it is empty. */
function xdel({ database }: CommandContext, [, key = '', ...texts]: readonly string[]): Value {
  const stream = database.read('stream', key);
  if (stream === undefined) return 0;
  const ids = texts.map((text) => readId(text, 0));
  return ids.filter((id) => remove(database, stream, id)).length;
}

/** "About" so many, which is whole nodes; or exactly from an id on. */
function xtrim({ database }: CommandContext, args: readonly string[]): Value {
  const [, key = '', strategy = '', about, threshold = ''] = args;
  const isByLength = strategy.toUpperCase() === 'MAXLEN';
  if (!isByLength && strategy.toUpperCase() !== 'MINID') throw syntaxError();
  if (args.length !== 5 || (about !== '~' && (about !== '=' || isByLength)))
    throw new NotSimulatedError('XTRIM but with ~, or MINID =');
  if (about === '=') return trimExactly(database, key, readId(threshold, 0));
  const limit = isByLength ? { kept: readKept(threshold) } : { minId: readId(threshold, 0) };
  const stream = database.read('stream', key);
  if (stream === undefined) return 0;
  const before = stream.length;
  const trimmed = stream.trim(limit);
  if (trimmed.length > 0) database.journal.note(() => stream.restore(trimmed));
  return before - stream.length;
}

function trimExactly(database: Database, key: string, minId: StreamId): number {
  const stream = database.read('stream', key);
  if (stream === undefined) return 0;
  const before = stream.length;
  while (stream.length > 0 && compareIds(stream.firstId, minId) < 0)
    remove(database, stream, stream.firstId);
  return before - stream.length;
}

function readKept(text: string): number {
  const kept = readInteger(text);
  if (kept < 0) throw new ReplyError('ERR The MAXLEN argument must be >= 0.');
  return kept;
}

/** A bound of a range as an id that belongs to it. */
function readBound(text: string, side: 'from' | 'to'): StreamId {
  if (text === '-') return NO_ID;
  if (text === '+') return { ms: Infinity, number: Infinity };
  const missing = side === 'from' ? 0 : Infinity;
  if (!text.startsWith('(')) return readId(text, missing);
  const id = readId(text.slice(1), missing);
  if (side === 'from') return { ms: id.ms, number: id.number + 1 };
  if (compareIds(id, NO_ID) === 0) throw new ReplyError('ERR invalid end ID for the interval');
  return id.number === 0
    ? { ms: id.ms - 1, number: Infinity }
    : { ms: id.ms, number: id.number - 1 };
}

function xrange(isReverse: boolean): Command['run'] {
  return ({ database }, args) => {
    const [from = '', to = ''] = isReverse ? [args[3], args[2]] : [args[2], args[3]];
    const [low, high] = [readBound(from, 'from'), readBound(to, 'to')];
    const most = readCount(args);
    const stream = database.read('stream', args[1] ?? '');
    if (stream === undefined) return [];
    if (most === 0) return null;
    const found = isReverse ? stream.reverseRange(low, high, most) : stream.range(low, high, most);
    return found.map(asValue);
  };
}

function readCount(args: readonly string[]): number {
  if (args.length === 4) return Infinity;
  if (args.length !== 6 || args[4]?.toUpperCase() !== 'COUNT') throw syntaxError();
  return Math.max(0, readInteger(args[5]));
}

function asValue({ id, fields }: StreamEntry): Value {
  return [idText(id), [...fields]];
}

/** Of what Redis tells, that which does not depend on how it keeps streams. */
function xinfo({ database }: CommandContext, args: readonly string[]): Value {
  if (args[1]?.toUpperCase() !== 'STREAM' || args.length !== 3)
    throw new NotSimulatedError(`XINFO ${args[1]}`);
  const stream = database.read('stream', args[2] ?? '');
  if (stream === undefined) throw new ReplyError('ERR no such key');
  return ['length', stream.length, 'last-generated-id', idText(stream.lastId)];
}

export const STREAM_COMMANDS: Readonly<Record<string, Command>> = {
  XADD: { arity: -5, writes: 'grow', run: xadd },
  XDEL: { arity: -3, writes: 'shrink', run: xdel },
  XLEN: {
    arity: 2,
    run: ({ database }, args) => database.read('stream', args[1] ?? '')?.length ?? 0,
  },
  XTRIM: { arity: -4, writes: 'shrink', run: xtrim },
  XRANGE: { arity: -4, run: xrange(false) },
  XREVRANGE: { arity: -4, run: xrange(true) },
  XINFO: { arity: -2, run: xinfo },
};
