/** Commands about sorted sets. */
import { ReplyError } from '../../src/store/redis/client/wire.ts';
import type { Command, CommandContext } from './command.ts';
import type { Database } from './database.ts';
import { readNumber, redisText } from './lua-number.ts';
import { NotSimulatedError } from './lua-value.ts';
import { type Scored, SortedSet } from './sorted-set.ts';
import { compareTexts, readInteger, syntaxError, type Value } from './value.ts';

function readScore(text: string): number {
  const score = /^\s|\s$/.test(text) ? undefined : readNumber(text);
  if (score === undefined || Number.isNaN(score))
    throw new ReplyError('ERR value is not a valid float');
  return score;
}

function put(database: Database, set: SortedSet, member: string, score: number): void {
  const old = set.score(member);
  set.set(member, score);
  database.journal.note(() => {
    if (old === undefined) set.delete(member);
    else set.set(member, old);
  });
}

/** Takes members out; a set that is empty then is gone. */
function take(database: Database, key: string, set: SortedSet, found: readonly Scored[]): void {
  for (const { member, score } of found) {
    set.delete(member);
    database.journal.note(() => set.set(member, score));
  }
  if (set.size === 0) database.remove(key);
}

function zadd({ database }: CommandContext, args: readonly string[]): Value {
  const key = args[1] ?? '';
  const isNew = args[2]?.toUpperCase() === 'NX';
  const from = isNew ? 3 : 2;
  if (/^(NX|XX|GT|LT|CH|INCR)$/i.test(args[from] ?? ''))
    throw new NotSimulatedError(`ZADD … ${args[from]}`);
  if (args.length === from || (args.length - from) % 2 !== 0) throw syntaxError();
  const scores: number[] = [];
  for (let i = from; i < args.length; i += 2) scores.push(readScore(args[i] ?? ''));
  const set = database.open('zset', key, () => new SortedSet());
  let added = 0;
  for (const [n, score] of scores.entries()) {
    const member = args[from + 2 * n + 1] ?? '';
    const old = set.score(member);
    if (old === undefined) added++;
    else if (isNew || old === score) continue;
    put(database, set, member, score);
  }
  return added;
}

function zrem({ database }: CommandContext, [, key = '', ...members]: readonly string[]): Value {
  const set = database.read('zset', key);
  if (set === undefined) return 0;
  const found = [...new Set(members)].flatMap((member) => {
    const score = set.score(member);
    return score === undefined ? [] : [{ member, score }];
  });
  take(database, key, set, found);
  return found.length;
}

function zpopmin({ database }: CommandContext, args: readonly string[]): Value {
  const key = args[1] ?? '';
  if (args.length > 2) throw new NotSimulatedError('ZPOPMIN of several');
  const set = database.read('zset', key);
  if (set === undefined) return [];
  const found = set.slice(0, 1);
  take(database, key, set, found);
  return asList(found, true);
}

function asList(found: readonly Scored[], hasScores: boolean): Value[] {
  const list: Value[] = [];
  for (const { member, score } of found) {
    list.push(member);
    if (hasScores) list.push(redisText(score));
  }
  return list;
}

/** From a place to behind another, where places may be counted from the end. */
function span(size: number, first: number, last: number): [number, number] {
  const from = Math.max(0, first < 0 ? size + first : first);
  const to = Math.min(size, (last < 0 ? size + last : last) + 1);
  return [from, Math.max(from, to)];
}

function zrange(isReverse: boolean): Command['run'] {
  return ({ database }, args) => {
    const [first, last] = [readInteger(args[2]), readInteger(args[3])];
    const hasScores = args.length > 4;
    if (hasScores && (args.length > 5 || args[4]?.toUpperCase() !== 'WITHSCORES'))
      throw new NotSimulatedError(`${args[0]} … ${args.slice(4).join(' ')}`);
    const set = database.read('zset', args[1] ?? '');
    if (set === undefined) return [];
    const [from, to] = span(set.size, first, last);
    if (!isReverse) return asList(set.slice(from, to), hasScores);
    return asList(set.slice(set.size - to, set.size - from).reverse(), hasScores);
  };
}

/** A bound of scores, and whether it belongs to them. */
function readBound(text: string): [score: number, isIncluded: boolean] {
  const isExcluded = text.startsWith('(');
  const digits = isExcluded ? text.slice(1) : text;
  const score = digits === '' ? 0 : readNumber(digits);
  if (score === undefined || Number.isNaN(score) || /\s$/.test(digits))
    throw new ReplyError('ERR min or max is not a float');
  return [score, !isExcluded];
}

function zrangebyscore({ database }: CommandContext, args: readonly string[]): Value {
  let [hasScores, offset, most] = [false, 0, -1];
  for (let i = 4; i < args.length; i++) {
    const word = args[i]?.toUpperCase();
    if (word === 'WITHSCORES') hasScores = true;
    else if (word === 'LIMIT' && i + 2 < args.length) {
      [offset, most] = [readInteger(args[i + 1]), readInteger(args[i + 2])];
      i += 2;
    } else throw syntaxError();
  }
  const [low, hasLow] = readBound(args[2] ?? '');
  const [high, hasHigh] = readBound(args[3] ?? '');
  const set = database.read('zset', args[1] ?? '');
  if (set === undefined || offset < 0) return [];
  const from = set.rankOf(low, !hasLow) + offset;
  const end = set.rankOf(high, hasHigh);
  return asList(set.slice(from, most < 0 ? end : Math.min(end, from + most)), hasScores);
}

/**
 * How a name lies to a bound of names: below 0 before it; 0 is on it, for a bound that belongs to
 * the range.
 */
function readNameBound(text: string, side: 'from' | 'to'): (name: string) => number {
  if (text === '-') return () => 1;
  if (text === '+') return () => -1;
  const isIncluded = text.startsWith('[');
  if (!isIncluded && !text.startsWith('('))
    throw new ReplyError('ERR min or max not valid string range item');
  const onIt = isIncluded ? 0 : side === 'from' ? -1 : 1;
  return (name) => compareTexts(name, text.slice(1)) || onIt;
}

/** For sets in which all have the same score. */
function zrangebylex({ database }: CommandContext, args: readonly string[]): Value {
  let [offset, most] = [0, -1];
  for (let i = 4; i < args.length; i += 3) {
    if (args[i]?.toUpperCase() !== 'LIMIT' || i + 2 >= args.length) throw syntaxError();
    [offset, most] = [readInteger(args[i + 1]), readInteger(args[i + 2])];
  }
  const [from, to] = [readNameBound(args[2] ?? '', 'from'), readNameBound(args[3] ?? '', 'to')];
  const set = database.read('zset', args[1] ?? '');
  if (set === undefined || offset < 0) return [];
  const all = set.slice(0, set.size);
  const found = all.filter(({ member }) => from(member) >= 0 && to(member) <= 0);
  return asList(found.slice(offset, most < 0 ? undefined : offset + most), false);
}

function zremrangebyrank({ database }: CommandContext, args: readonly string[]): Value {
  const [first, last] = [readInteger(args[2]), readInteger(args[3])];
  const key = args[1] ?? '';
  const set = database.read('zset', key);
  if (set === undefined) return 0;
  const found = set.slice(...span(set.size, first, last));
  if (found.length > 0) take(database, key, set, found);
  return found.length;
}

function zscore({ database }: CommandContext, [, key = '', member = '']: readonly string[]): Value {
  const score = database.read('zset', key)?.score(member);
  return score === undefined ? null : redisText(score);
}

export const SORTED_SET_COMMANDS: Readonly<Record<string, Command>> = {
  ZADD: { arity: -4, writes: 'grow', run: zadd },
  ZREM: { arity: -3, writes: 'shrink', run: zrem },
  ZPOPMIN: { arity: -2, writes: 'shrink', run: zpopmin },
  ZRANGE: { arity: -4, run: zrange(false) },
  ZREVRANGE: { arity: -4, run: zrange(true) },
  ZRANGEBYSCORE: { arity: -4, run: zrangebyscore },
  ZRANGEBYLEX: { arity: -4, run: zrangebylex },
  ZREMRANGEBYRANK: { arity: 4, writes: 'shrink', run: zremrangebyrank },
  ZSCORE: { arity: 3, run: zscore },
  ZCARD: { arity: 2, run: ({ database }, args) => database.read('zset', args[1] ?? '')?.size ?? 0 },
};
