import { createHash } from 'node:crypto';
import { ReplyError } from '../../src/store/redis/client/wire.ts';
import type { ScriptHost } from './lua.ts';
import { redisText } from './lua-number.ts';
import { LuaError, LuaTable, type LuaValue } from './lua-value.ts';
import { Status, type Value } from './value.ts';

/** One run of a script: how it calls commands, and what it is given for them. */
export class ScriptRun implements ScriptHost {
  readonly #execute: (args: string[]) => Value;

  /** `execute` gives errors as values. */
  constructor(execute: (args: string[]) => Value) {
    this.#execute = execute;
  }

  call(line: number, ...args: LuaValue[]): LuaValue {
    const value = this.#run(args);
    if (value instanceof ReplyError) throw new LuaError(value.message, line);
    return toLua(value);
  }

  pcall(_line: number, ...args: LuaValue[]): LuaValue {
    return toLua(this.#run(args));
  }

  errorReply(_line: number, ...args: LuaValue[]): LuaValue {
    const [text] = args;
    if (args.length !== 1 || typeof text !== 'string') return single('err', WRONG_ARGUMENTS);
    return single('err', text.startsWith('-') ? text.slice(1) : text);
  }

  statusReply(_line: number, ...args: LuaValue[]): LuaValue {
    const [text] = args;
    if (args.length !== 1 || typeof text !== 'string') return single('err', WRONG_ARGUMENTS);
    return single('ok', text);
  }

  sha1hex(line: number, ...args: LuaValue[]): LuaValue {
    const [text] = args;
    if (args.length !== 1) throw new LuaError('ERR wrong number of arguments', line);
    return sha1(typeof text === 'number' ? redisText(text) : typeof text === 'string' ? text : '');
  }

  /** Makes texts of what it is given, in place: this is on the way of every command. */
  #run(args: LuaValue[]): Value {
    if (args.length === 0)
      return new ReplyError('ERR Please specify at least one argument for this redis lib call');
    for (let i = 0; i < args.length; i++) {
      const arg = args[i];
      if (typeof arg === 'number') args[i] = redisText(arg);
      else if (typeof arg !== 'string')
        return new ReplyError('ERR Lua redis lib command arguments must be strings or integers');
    }
    return this.#execute(args as string[]);
  }
}

const WRONG_ARGUMENTS = 'ERR wrong number or type of arguments';

function single(name: 'ok' | 'err', text: string): LuaTable {
  return new LuaTable([], new Map([[name, text]]));
}

function toLua(value: Value): LuaValue {
  if (typeof value === 'string' || typeof value === 'number') return value;
  if (value === null) return false;
  if (Array.isArray(value)) return new LuaTable(value.map(toLua));
  return value instanceof Status ? single('ok', value.text) : single('err', value.message);
}

/** What a script has returned, as a command gives it. */
export function fromLua(value: LuaValue): Value {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Math.trunc(value);
  if (value === true) return 1;
  if (!(value instanceof LuaTable)) return null;
  const [error, ok] = [value.fields?.get('err'), value.fields?.get('ok')];
  if (typeof error === 'string') return new ReplyError(error);
  if (typeof ok === 'string') return new Status(ok);
  const list: Value[] = [];
  for (const item of value.items) {
    if (item === undefined) break;
    list.push(fromLua(item));
  }
  return list;
}

const digests = new Map<string, string>();
/** Beyond so many, they are forgotten and made again. */
const MOST_DIGESTS = 10_000;

/** Remembered, because the same records are looked at again and again. */
export function sha1(text: string): string {
  let digest = digests.get(text);
  if (digest === undefined) {
    if (digests.size >= MOST_DIGESTS) digests.clear();
    digest = createHash('sha1').update(text).digest('hex');
    digests.set(text, digest);
  }
  return digest;
}
