/**
 * What Lua's operators do with values whose types are not known beforehand. Each is told its line,
 * for errors.
 */
import { luaText, readNumber } from './lua-number.ts';
import {
  asBytes,
  LuaTable,
  type LuaValue,
  NotSimulatedError,
  raise,
  Several,
  typeName,
} from './lua-value.ts';

/** The one value of a call. */
export function first(result: LuaValue | Several): LuaValue {
  return result instanceof Several ? result.values[0] : result;
}

/** All values of a call. */
export function all(result: LuaValue | Several): readonly LuaValue[] {
  return result instanceof Several ? result.values : [result];
}

export function isTrue(value: LuaValue): boolean {
  return value !== undefined && value !== false;
}

/** A value that arithmetic can be done with. */
function operand(value: LuaValue, line: number): number {
  if (typeof value === 'number') return value;
  const number = typeof value === 'string' ? readNumber(value) : undefined;
  return number ?? raise(`attempt to perform arithmetic on a ${typeName(value)} value`, line);
}

export function add(a: LuaValue, b: LuaValue, line: number): number {
  return operand(a, line) + operand(b, line);
}

export function subtract(a: LuaValue, b: LuaValue, line: number): number {
  return operand(a, line) - operand(b, line);
}

export function multiply(a: LuaValue, b: LuaValue, line: number): number {
  return operand(a, line) * operand(b, line);
}

export function divide(a: LuaValue, b: LuaValue, line: number): number {
  return operand(a, line) / operand(b, line);
}

export function modulo(a: LuaValue, b: LuaValue, line: number): number {
  const [dividend, divisor] = [operand(a, line), operand(b, line)];
  return dividend - Math.floor(dividend / divisor) * divisor;
}

export function negate(a: LuaValue, line: number): number {
  return -operand(a, line);
}

export function isLess(a: LuaValue, b: LuaValue, line: number): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a < b;
  if (typeof a === 'string' && typeof b === 'string') return a < b;
  return incomparable(a, b, line);
}

export function isAtMost(a: LuaValue, b: LuaValue, line: number): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a <= b;
  if (typeof a === 'string' && typeof b === 'string') return a <= b;
  return incomparable(a, b, line);
}

/** a > b, which is b < a, in the order in which they stand. */
export function isLessTurned(a: LuaValue, b: LuaValue, line: number): boolean {
  return isLess(b, a, line);
}

export function isAtMostTurned(a: LuaValue, b: LuaValue, line: number): boolean {
  return isAtMost(b, a, line);
}

function incomparable(a: LuaValue, b: LuaValue, line: number): never {
  const [one, other] = [typeName(a), typeName(b)];
  if (one === other) return raise(`attempt to compare two ${one} values`, line);
  return raise(`attempt to compare ${one} with ${other}`, line);
}

export function concatenate(a: LuaValue, b: LuaValue, line: number): string {
  if (typeof a === 'string' && typeof b === 'string') return a + b;
  return piece(a, line) + piece(b, line);
}

function piece(value: LuaValue, line: number): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return luaText(value);
  return raise(`attempt to concatenate a ${typeName(value)} value`, line);
}

export function lengthOf(value: LuaValue, line: number): number {
  if (value instanceof LuaTable) return value.length;
  if (typeof value === 'string') return asBytes(value).length;
  return raise(`attempt to get length of a ${typeName(value)} value`, line);
}

export function at(table: LuaValue, key: LuaValue, line: number): LuaValue {
  if (table instanceof LuaTable) {
    if (typeof key === 'number') return table.items[key - 1];
    return typeof key === 'string' ? table.fields?.get(key) : undefined;
  }
  // The fields of a string are functions, which our scripts call by their library's name.
  if (typeof table === 'string') return undefined;
  return raise(`attempt to index a ${typeName(table)} value`, line);
}

export function put(table: LuaValue, key: LuaValue, value: LuaValue, line: number): void {
  if (!(table instanceof LuaTable)) raise(`attempt to index a ${typeName(table)} value`, line);
  const { items } = table;
  if (key === items.length + 1) {
    if (value !== undefined) items.push(value);
  } else if (typeof key === 'number' && key > 0 && key <= items.length && Number.isInteger(key)) {
    if (value === undefined) throw new NotSimulatedError(`a hole in a table, line ${line}`);
    items[key - 1] = value;
  } else if (typeof key === 'string') {
    table.fields ??= new Map();
    table.fields.set(key, value);
  } else {
    throw new NotSimulatedError(`a key ${String(key)} in a table, line ${line}`);
  }
}

/** The items that `ipairs` would go over. */
export function itemsOf(table: LuaValue, line: number): readonly LuaValue[] {
  if (table instanceof LuaTable) return table.items;
  return raise(`bad argument #1 to 'ipairs' (table expected, got ${typeName(table)})`, line);
}

/** The begin, end or step of a `for`. */
export function bound(value: LuaValue, what: string, line: number): number {
  const number = typeof value === 'string' ? readNumber(value) : value;
  return typeof number === 'number' ? number : raise(`'for' ${what} must be a number`, line);
}

export function call(value: LuaValue, args: readonly LuaValue[], line: number): LuaValue | Several {
  if (typeof value === 'function') return value(...args);
  return raise(`attempt to call a ${typeName(value)} value`, line);
}
