/**
 * Values of Lua as JavaScript has them: nil is `undefined`, strings are text, a table is a
 * `LuaTable`. Text stands for its bytes in UTF-8; where Lua looks at single bytes, `asBytes` makes
 * them.
 */
export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction;

/** Gives a value, or `Several`, of which who wants one takes the first. */
type LuaFunction = (...args: LuaValue[]) => LuaValue | Several;

/** What a script raised, as the server says it, and in which line of the script. */
export class LuaError extends Error {
  readonly line: number;

  constructor(text: string, line: number) {
    super(text);
    this.line = line;
  }
}

/**
 * Something of Lua or Redis that the simulation does not have: refused, so that it is never
 * silently wrong.
 */
export class NotSimulatedError extends Error {
  readonly what: string;

  constructor(what: string) {
    super(`not simulated: ${what}`);
    this.what = what;
  }
}

/** No result, or more than one. */
export class Several {
  readonly values: readonly LuaValue[];

  constructor(values: readonly LuaValue[]) {
    this.values = values;
  }
}

/** What a function gives that returns nothing. */
export const NOTHING = new Several([]);

/** A sequence, and fields by name. Our scripts have no other tables. */
export class LuaTable {
  /** As Lua's array part: may hold nil only where a constructor was given it. */
  readonly items: LuaValue[];
  fields: Map<string, LuaValue> | undefined;

  constructor(items: LuaValue[], fields?: Map<string, LuaValue>) {
    this.items = items;
    this.fields = fields;
  }

  /** A border as Lua finds it: the length, where there are no holes. */
  get length(): number {
    const { items } = this;
    let after = items.length;
    if (after === 0 || items[after - 1] !== undefined) return after;
    let border = 0;
    while (after - border > 1) {
      const middle = (border + after) >> 1;
      if (items[middle - 1] === undefined) after = middle;
      else border = middle;
    }
    return border;
  }
}

export function typeName(value: LuaValue): string {
  if (value === undefined) return 'nil';
  return value instanceof LuaTable ? 'table' : typeof value;
}

/** An error of the script's own making, in the words of Lua. */
export function raise(message: string, line: number): never {
  throw new LuaError(`ERR user_script:${line}: ${message}`, line);
}

const NOT_ASCII = /[^\0-\x7f]/;

/** Text as one character per byte. */
export function asBytes(text: string): string {
  return NOT_ASCII.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text;
}

/**
 * The text of these bytes. A cut character becomes what a client would show.
 */
export function asText(bytes: string): string {
  return NOT_ASCII.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes;
}
