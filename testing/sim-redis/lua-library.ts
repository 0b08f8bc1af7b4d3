/** The functions of Lua that scripts call. Each is told the line of the call, for errors. */
import { luaText, readNumber, wholeText } from './lua-number.ts';
import { first, isLess, isTrue } from './lua-operators.ts';
import { regExpOf } from './lua-pattern.ts';
import { luaSort } from './lua-sort.ts';
import {
  asBytes,
  asText,
  LuaTable,
  type LuaValue,
  NOTHING,
  NotSimulatedError,
  raise,
  Several,
  typeName,
} from './lua-value.ts';

function typeOf(line: number, ...args: LuaValue[]): string {
  if (args.length === 0) raise("bad argument #1 to 'type' (value expected)", line);
  return typeName(args[0]);
}

function toNumber(line: number, ...args: LuaValue[]): number | undefined {
  if (args.length === 0) raise("bad argument #1 to 'tonumber' (value expected)", line);
  if (args.length > 1) throw new NotSimulatedError(`tonumber with a base, line ${line}`);
  const [value] = args;
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? readNumber(value) : undefined;
}

function toText(line: number, ...args: LuaValue[]): string {
  if (args.length === 0) raise("bad argument #1 to 'tostring' (value expected)", line);
  const [value] = args;
  if (typeof value === 'number') return luaText(value);
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  if (value === undefined) return 'nil';
  throw new NotSimulatedError(`the address of a ${typeName(value)}, line ${line}`);
}

function select(line: number, which: LuaValue, ...rest: LuaValue[]): LuaValue | Several {
  if (which === '#') return rest.length;
  const from = numberAt([which], 0, 'select', line);
  if (from < 1) throw new NotSimulatedError(`select from the end, line ${line}`);
  return new Several(rest.slice(from - 1));
}

function unpack(line: number, table: LuaValue, ...range: LuaValue[]): Several {
  if (!(table instanceof LuaTable))
    return raise(`bad argument #1 to 'unpack' (table expected, got ${typeName(table)})`, line);
  if (range.length > 0) throw new NotSimulatedError(`unpack of a part, line ${line}`);
  return new Several(table.items.slice(0, table.length));
}

function bad(args: readonly LuaValue[], i: number, name: string, wanted: string, line: number) {
  const got = i < args.length ? typeName(args[i]) : 'no value';
  return raise(`bad argument #${i + 1} to '${name}' (${wanted} expected, got ${got})`, line);
}

function textAt(args: readonly LuaValue[], i: number, name: string, line: number): string {
  const value = args[i];
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? luaText(value) : bad(args, i, name, 'string', line);
}

function numberAt(args: readonly LuaValue[], i: number, name: string, line: number): number {
  const value = args[i];
  if (typeof value === 'number') return value;
  const number = typeof value === 'string' ? readNumber(value) : undefined;
  return number ?? bad(args, i, name, 'number', line);
}

function sub(line: number, ...args: LuaValue[]): string {
  const bytes = asBytes(textAt(args, 0, 'sub', line));
  const from = Math.trunc(numberAt(args, 1, 'sub', line));
  const to = args[2] === undefined ? -1 : Math.trunc(numberAt(args, 2, 'sub', line));
  const begin = Math.max(1, from < 0 ? bytes.length + from + 1 : from);
  const end = to < 0 ? bytes.length + to + 1 : to;
  return asText(bytes.slice(begin - 1, Math.max(begin - 1, end)));
}

function find(line: number, ...args: LuaValue[]): LuaValue | Several {
  const bytes = asBytes(textAt(args, 0, 'find', line));
  const wanted = asBytes(textAt(args, 1, 'find', line));
  if (args[2] !== 1 || args[3] !== true)
    throw new NotSimulatedError(`string.find but of plain text from 1 on, line ${line}`);
  const found = bytes.indexOf(wanted);
  return found < 0 ? undefined : new Several([found + 1, found + wanted.length]);
}

function match(line: number, ...args: LuaValue[]): LuaValue | Several {
  const text = textAt(args, 0, 'match', line);
  const pattern = textAt(args, 1, 'match', line);
  if (args.length > 2) throw new NotSimulatedError(`string.match from a place on, line ${line}`);
  const found = regExpOf(asBytes(pattern)).exec(asBytes(text));
  if (found === null) return undefined;
  if (found.length === 1) return asText(found[0]);
  if (found.length === 2) return asText(found[1] ?? '');
  return new Several(found.slice(1).map(asText));
}

const DIRECTIVE = /%(?:%|[^A-Za-z]*[A-Za-z]?)/g;

function format(line: number, ...args: LuaValue[]): string {
  const form = textAt(args, 0, 'format', line);
  // By far the most frequent one.
  if (form === '%.0f' && typeof args[1] === 'number') return wholeText(args[1]);
  let next = 1;
  return form.replace(DIRECTIVE, (directive) => {
    if (directive === '%%') return '%';
    const i = next++;
    if (i >= args.length) raise(`bad argument #${i + 1} to 'format' (no value)`, line);
    if (directive === '%s') return textAt(args, i, 'format', line);
    if (directive === '%d') return wholeText(Math.trunc(numberAt(args, i, 'format', line)));
    if (directive === '%.0f') return wholeText(numberAt(args, i, 'format', line));
    throw new NotSimulatedError(`'${directive}' of string.format, line ${line}`);
  });
}

function rep(line: number, ...args: LuaValue[]): string {
  return textAt(args, 0, 'rep', line).repeat(Math.max(0, numberAt(args, 1, 'rep', line)));
}

function max(line: number, ...args: LuaValue[]): number {
  let most = numberAt(args, 0, 'max', line);
  for (let i = 1; i < args.length; i++) most = Math.max(most, numberAt(args, i, 'max', line));
  return most;
}

function min(line: number, ...args: LuaValue[]): number {
  let least = numberAt(args, 0, 'min', line);
  for (let i = 1; i < args.length; i++) least = Math.min(least, numberAt(args, i, 'min', line));
  return least;
}

function floor(line: number, ...args: LuaValue[]): number {
  return Math.floor(numberAt(args, 0, 'floor', line));
}

function sort(line: number, ...args: LuaValue[]): Several {
  const [table, isBefore] = args;
  if (!(table instanceof LuaTable)) return bad(args, 0, 'sort', 'table', line);
  const isOrdered = (a: LuaValue, b: LuaValue) =>
    typeof isBefore === 'function' ? isTrue(first(isBefore(a, b))) : isLess(a, b, line);
  luaSort(table.items, isOrdered, () => raise('invalid order function for sorting', line));
  return NOTHING;
}

/**
 * By the name a script calls it by; `isSeveral` where it may give another number of values than
 * one.
 */
export const LIBRARY: ReadonlyMap<
  string,
  {
    readonly run: (line: number, ...args: LuaValue[]) => LuaValue | Several;
    readonly type?: 'number' | 'string';
    readonly isSeveral?: boolean;
  }
> = new Map([
  ['type', { run: typeOf, type: 'string' as const }],
  ['tonumber', { run: toNumber }],
  ['tostring', { run: toText, type: 'string' as const }],
  ['select', { run: select, isSeveral: true }],
  ['unpack', { run: unpack, isSeveral: true }],
  ['string.sub', { run: sub, type: 'string' as const }],
  ['string.find', { run: find, isSeveral: true }],
  ['string.match', { run: match, isSeveral: true }],
  ['string.format', { run: format, type: 'string' as const }],
  ['string.rep', { run: rep, type: 'string' as const }],
  ['math.max', { run: max, type: 'number' as const }],
  ['math.min', { run: min, type: 'number' as const }],
  ['math.floor', { run: floor, type: 'number' as const }],
  ['table.sort', { run: sort, isSeveral: true }],
]);
