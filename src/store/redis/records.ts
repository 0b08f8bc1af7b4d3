import { type Clock, timeLeft } from '../../base/clock.ts';
import { KeyForeignError } from '../../base/errors.ts';
import {
  type Call,
  CHANGES_PAGE,
  type ChangesCall,
  type ChangesPage,
  type GetReply,
  type PutReply,
  REMOVALS_KEPT,
  type RecordRef,
  type RecordStore,
  type RecordWrite,
  type RefusedWrite,
  type RemoveReply,
} from '../store.ts';
import type { Fleet } from './fleet.ts';
import type { Keys } from './keys.ts';
import { keyFailure } from './replies.ts';
import { type Script, scripts } from './scripts.ts';

/** Records in one request: what a script does to them at once keeps Redis from everybody else. */
const CHUNK = 200;
const KEPT = String(REMOVALS_KEPT);

type Changing = 'put' | 'remove';
type ScriptReply = [string] | [number] | [number, number];

export class RedisRecords implements RecordStore {
  readonly #keys: Keys;
  readonly #fleet: Fleet;
  readonly #clock: Clock;

  constructor(parts: { keys: Keys; fleet: Fleet; clock: Clock }) {
    this.#keys = parts.keys;
    this.#fleet = parts.fleet;
    this.#clock = parts.clock;
  }

  async get(collection: string, ids: readonly string[], call: Call): Promise<GetReply[]> {
    const keys = ids.map((id) => this.#keys.record(collection, id));
    const replies = await this.#run(
      { script: scripts.get, keys, perKey: keys.map(() => []) },
      call,
    );
    return replies.map((reply, i) => {
      if (reply instanceof Error) return { kind: 'failed', error: reply };
      if (reply === null) return { kind: 'absent' };
      const found = reply as [string] | [string, number, number];
      if (found.length === 1) return this.#failed('get', keys[i] ?? '', found[0]);
      const [json, revision, fence] = found;
      try {
        return { kind: 'found', value: JSON.parse(json), revision, fence };
      } catch {
        return {
          kind: 'failed',
          error: new KeyForeignError({ key: keys[i] ?? '', found: 'text that is no JSON' }),
        };
      }
    });
  }

  async put(collection: string, writes: readonly RecordWrite[], call: Call): Promise<PutReply[]> {
    const args = ({ id, value, ...conditions }: RecordWrite) => [
      id,
      JSON.stringify(value),
      ...conditionArgs(conditions),
    ];
    const replies = await this.#change('put', collection, writes, args, call);
    return replies.map((reply) =>
      Array.isArray(reply) ? { kind: 'written', revision: reply[1] ?? 0 } : reply,
    );
  }

  async remove(
    collection: string,
    removals: readonly RecordRef[],
    call: Call,
  ): Promise<RemoveReply[]> {
    const args = ({ id, ...conditions }: RecordRef) => [id, ...conditionArgs(conditions)];
    const replies = await this.#change('remove', collection, removals, args, call);
    return replies.map((reply) =>
      Array.isArray(reply) ? { kind: reply[0] === 1 ? 'removed' : 'absent' } : reply,
    );
  }

  async changes(collection: string, { since, timeoutMs }: ChangesCall): Promise<ChangesPage> {
    const keys = [this.#keys.index(collection)];
    const perKey = [[String(since), String(CHANGES_PAGE), KEPT]];
    const [reply] = await this.#run({ script: scripts.changes, keys, perKey }, { timeoutMs }, true);
    if (reply instanceof Error) throw reply;
    const [version, more, reset, written, removed] = reply as [
      string,
      number,
      number,
      string[],
      string[],
    ];
    return { version: Number(version), more: more === 1, reset: reset === 1, written, removed };
  }

  async discover(): Promise<number> {
    return 0;
  }

  /** Changes records and tells their index: in one step on a single server. */
  async #change<T extends RecordRef>(
    verb: Changing,
    collection: string,
    changes: readonly T[],
    argsOf: (change: T) => string[],
    call: Call,
  ): Promise<(number[] | RefusedWrite)[]> {
    const leftMs = timeLeft(this.#clock, call.timeoutMs);
    const index = this.#keys.index(collection);
    const isApart = this.#fleet.lane !== undefined;
    const ids = changes.map(({ id }) => id);
    // A Cluster can not do both at once. The index goes first, so that nothing is ever there without being listed; and
    // once more afterwards, for those who were told before they could see it.
    if (isApart && verb === 'put') await this.#announce(index, ids, '+', leftMs());
    const keys = ids.map((id) => this.#keys.record(collection, id));
    const work = {
      script: scripts[verb],
      keys,
      perKey: changes.map(argsOf),
      before: index,
      head: () => [isApart ? '' : KEPT],
    };
    const replies = (await this.#run(work, { timeoutMs: leftMs() })) as (Error | ScriptReply)[];
    const done = ids.filter((_, i) => isDone(replies[i]));
    if (isApart) await this.#announce(index, done, verb === 'put' ? '+' : '-', leftMs());
    return replies.map((reply, i) => this.#judged(verb, keys[i] ?? '', reply));
  }

  #judged(verb: Changing, key: string, reply: Error | ScriptReply): number[] | RefusedWrite {
    if (reply instanceof Error) return { kind: 'failed', error: reply };
    const [code, fact = 0] = reply;
    if (typeof code === 'string') return this.#failed(verb, key, code);
    if (code === 2) return { kind: 'stale', seen: fact };
    return code === 3 ? { kind: 'conflict', revision: fact } : [code, fact];
  }

  async #announce(
    index: string,
    ids: readonly string[],
    mark: '+' | '-',
    timeoutMs: number,
  ): Promise<void> {
    if (ids.length === 0) return;
    const args = [KEPT, ...ids.flatMap((id) => [mark, id])];
    const work = { script: scripts.announce, keys: [index], perKey: [args] };
    const [reply] = await this.#run(work, { timeoutMs }, true);
    if (reply instanceof Error) throw reply;
  }

  /** Runs a verb in chunks; gives each key's reply, or the error that came instead. */
  async #run(
    work: {
      script: Script;
      keys: string[];
      perKey: string[][];
      before?: string;
      head?: () => string[];
    },
    { timeoutMs }: Call,
    isWhole = false,
  ): Promise<unknown[]> {
    const replies: unknown[] = [];
    const leftMs = timeLeft(this.#clock, timeoutMs);
    for (let at = 0; at < work.keys.length; at += CHUNK) {
      const keys = work.keys.slice(at, at + CHUNK);
      const perKey = work.perKey.slice(at, at + CHUNK);
      for (const part of await this.#fleet.run({ ...work, keys, perKey }, leftMs())) {
        const failed =
          part.kind === 'failed' ? part.error : new Error(`${work.script.verb}: no reply`);
        for (let i = 0; i < part.count; i++) {
          const reply =
            part.kind !== 'reply' ? failed : isWhole ? part.reply : (part.reply as unknown[])[i];
          replies[at + part.from + i] = reply;
        }
      }
    }
    return replies;
  }

  #failed(operation: string, key: string, reply: string): { kind: 'failed'; error: Error } {
    return {
      kind: 'failed',
      error: keyFailure(reply, key, { store: this.#fleet.name, operation }),
    };
  }
}

function isDone(reply: Error | ScriptReply | undefined): boolean {
  return Array.isArray(reply) && reply[0] === 1;
}

function conditionArgs({ fence, ifRevision }: Omit<RecordRef, 'id'>): string[] {
  return [
    fence === undefined ? '' : String(fence),
    ifRevision === undefined ? '' : String(ifRevision),
  ];
}
