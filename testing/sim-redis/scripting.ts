import { ReplyError } from '../../src/store/redis/client/wire.ts';
import { type CompiledScript, compileLua } from './lua.ts';
import { first } from './lua-operators.ts';
import { LuaError, LuaTable, NotSimulatedError } from './lua-value.ts';
import { fromLua, ScriptRun, sha1 } from './script-run.ts';
import { OK, readInteger, type Value } from './value.ts';

/** What a script of ours begins with, behind whatever stands before it: its name. */
const HEADER = /^-- (\w+): /gm;

/** The scripts a server has been shown, by their digest. */
export class Scripting {
  readonly #known = new Map<string, { readonly run: CompiledScript; readonly name: string }>();

  forget(): void {
    this.#known.clear();
  }

  /**
   * `EVAL` and `EVALSHA`. `execute` carries out the commands of this one run, and gives errors as
   * values.
   */
  evaluate(args: readonly string[], execute: (args: string[]) => Value): Value {
    const isByDigest = args[0]?.length === 'EVALSHA'.length;
    const sha = isByDigest ? (args[1] ?? '').toLowerCase() : this.#learn(args[1] ?? '');
    const count = readInteger(args[2]);
    if (count > args.length - 3)
      throw new ReplyError("ERR Number of keys can't be greater than number of args");
    if (count < 0) throw new ReplyError("ERR Number of keys can't be negative");
    const script = this.#known.get(sha);
    if (script === undefined) throw new ReplyError('NOSCRIPT No matching script. Please use EVAL.');
    const keys = new LuaTable(args.slice(3, 3 + count));
    const rest = new LuaTable(args.slice(3 + count));
    try {
      return fromLua(first(script.run(new ScriptRun(execute), keys, rest)));
    } catch (error) {
      if (!(error instanceof LuaError)) throw inScript(error, script.name);
      return new ReplyError(`${error.message} script: ${sha}, on @user_script:${error.line}.`);
    }
  }

  /** `SCRIPT`, as far as that is about what is known. */
  manage([, word = '', ...args]: readonly string[]): Value {
    switch (word.toUpperCase()) {
      case 'LOAD':
        return this.#learn(args[0] ?? '');
      case 'EXISTS':
        return args.map((sha) => (this.#known.has(sha) ? 1 : 0));
      case 'FLUSH':
        this.forget();
        return OK;
      default:
        throw new NotSimulatedError(`SCRIPT ${word}`);
    }
  }

  #learn(source: string): string {
    const sha = sha1(source);
    if (this.#known.has(sha)) return sha;
    const name = [...source.matchAll(HEADER)].at(-1)?.[1] ?? sha;
    try {
      this.#known.set(sha, { run: compileLua(source), name });
    } catch (error) {
      throw inScript(error, name);
    }
    return sha;
  }
}

function inScript(error: unknown, name: string): unknown {
  if (!(error instanceof NotSimulatedError)) return error;
  return new NotSimulatedError(`${error.what}, in the script ${name}`);
}
