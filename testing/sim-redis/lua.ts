/**
 * The Lua of our scripts, as JavaScript. A script is translated once into a function that does
 * directly what the script says: locals are locals, loops are loops. Of Lua 5.1 there is what our
 * scripts need and what goes without saying; all else is refused with its line, so that a script is
 * never silently run in another sense.
 */
import { createRequire } from 'node:module';
import type { parse as Parse } from 'luaparse';
import { libraryCode } from './lua-expressions.ts';
import { LIBRARY } from './lua-library.ts';
import * as operators from './lua-operators.ts';
import { translate } from './lua-statements.ts';
import { asBytes, LuaTable, type LuaValue, NOTHING, Several } from './lua-value.ts';

/**
 * What a script may ask of the server that runs it. Each is told the line of the call, for errors.
 */
export interface ScriptHost {
  call(line: number, ...args: LuaValue[]): LuaValue;
  pcall(line: number, ...args: LuaValue[]): LuaValue;
  errorReply(line: number, ...args: LuaValue[]): LuaValue;
  statusReply(line: number, ...args: LuaValue[]): LuaValue;
  sha1hex(line: number, ...args: LuaValue[]): LuaValue;
}

export type CompiledScript = (
  redis: ScriptHost,
  keys: LuaTable,
  args: LuaTable,
) => LuaValue | Several;

/** What a translation refers to by name. */
const NAMES: Readonly<Record<string, unknown>> = {
  ...operators,
  ...Object.fromEntries([...LIBRARY].map(([name, { run }]) => [libraryCode(name), run])),
  LuaTable,
  Several,
  NOTHING,
};

const compiled = new Map<string, CompiledScript>();

/** The function a script is; throws what is wrong with it. */
export function compileLua(source: string): CompiledScript {
  let script = compiled.get(source);
  if (script === undefined) {
    script = compile(source);
    compiled.set(source, script);
  }
  return script;
}

function compile(source: string): CompiledScript {
  const bytes = asBytes(source);
  const chunk = parser()(bytes, {
    luaVersion: '5.1',
    encodingMode: 'pseudo-latin1',
    locations: true,
    ranges: true,
    comments: false,
  });
  const names = Object.keys(NAMES).join(', ');
  const code = `'use strict';\nconst { ${names} } = lua;\nreturn function (redis, KEYS, ARGV) {\n${translate(bytes, chunk)}};`;
  return new Function('lua', code)(NAMES) as CompiledScript;
}

/**
 * Loaded where a script is translated: who uses nothing but the rest of `holdfast/testing` need not
 * have it.
 */
function parser(): typeof Parse {
  try {
    return (createRequire(import.meta.url)('luaparse') as { parse: typeof Parse }).parse;
  } catch (cause) {
    throw new Error('Scripts are read with luaparse: npm install --save-dev luaparse', { cause });
  }
}
