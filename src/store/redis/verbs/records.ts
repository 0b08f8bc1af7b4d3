import { type Clock, timeLeft } from '../../../core/clock.ts';
import { KeyForeignError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { sized } from '../../port/limits.ts';
import type {
  ChangesCall,
  ChangesPage,
  GetReply,
  PutReply,
  RecordRef,
  RecordStore,
  RecordWrite,
  RefusedWrite,
  RemoveReply,
} from '../../port/record-store.ts';
import type { Call } from '../../port/store.ts';
import { keyFailure } from '../client/replies.ts';
import type { Keys } from '../keys.ts';
import { scripts } from '../scripts.ts';
import type { Servers } from '../topology/servers.ts';
import { inChunks } from './chunks.ts';
import { type Change, RecordIndex } from './record-index.ts';

type Changing = 'put' | 'remove';
type ScriptReply = [string] | [number] | [number, number];

export class RedisRecords implements RecordStore {
  readonly #keys: Keys;
  readonly #servers: Servers;
  readonly #clock: Clock;
  readonly #index: RecordIndex;

  constructor(rt: BaseRuntime, keys: Keys, servers: Servers, removalsKept: number) {
    this.#keys = keys;
    this.#servers = servers;
    this.#clock = rt.clock;
    this.#index = new RecordIndex(rt, keys, servers, removalsKept);
  }

  async get(collection: string, ids: readonly string[], call: Call): Promise<GetReply[]> {
    const keys = ids.map((id) => this.#keys.record(collection, id));
    const work = { script: scripts['record/get'], keys, perKey: keys.map(() => []) };
    const replies = await inChunks(this.#servers, work, timeLeft(this.#clock, call.timeoutMs));
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
      sized('record', `${collection}:${id}`, JSON.stringify(value)),
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

  changes(collection: string, call: ChangesCall): Promise<ChangesPage> {
    return this.#index.changes(collection, call);
  }

  discover(collection: string, call: Call): Promise<number> {
    return this.#index.discover(collection, call);
  }

  /** Changes records and updates their index: in one step on a single server. */
  async #change<T extends RecordRef>(
    verb: Changing,
    collection: string,
    changes: readonly T[],
    argsOf: (change: T) => string[],
    call: Call,
  ): Promise<(number[] | RefusedWrite)[]> {
    const leftMs = timeLeft(this.#clock, call.timeoutMs);
    const { isApart } = this.#index;
    const ids = changes.map(({ id }) => id);
    // Before the first request: this throws for a value that may not be written.
    const perKey = changes.map(argsOf);
    // A Cluster cannot do both at once. The index goes first, so that no record is unlisted. It is
    // told again afterwards, for readers that read the record before it was written.
    const coming = ids.map((id): Change => [id, '+']);
    if (isApart && verb === 'put') await this.#index.announce(collection, coming, leftMs());
    const keys = ids.map((id) => this.#keys.record(collection, id));
    const work = {
      script: scripts[`record/${verb}`],
      keys,
      perKey,
      before: this.#keys.index(collection),
      head: () => [isApart ? '' : this.#index.removalsKept],
    };
    const replies = (await inChunks(this.#servers, work, leftMs)) as (Error | ScriptReply)[];
    if (isApart)
      await this.#index.announceChecked(collection, outcomes(verb, ids, replies), leftMs);
    return replies.map((reply, i) => this.#replyOf(verb, keys[i] ?? '', reply));
  }

  #replyOf(verb: Changing, key: string, reply: Error | ScriptReply): number[] | RefusedWrite {
    if (reply instanceof Error) return { kind: 'failed', error: reply };
    const [code, fact = 0] = reply;
    if (typeof code === 'string') return this.#failed(verb, key, code);
    if (code === 2) return { kind: 'stale', seen: fact };
    return code === 3 ? { kind: 'conflict', revision: fact } : [code, fact];
  }

  #failed(operation: string, key: string, reply: string): { kind: 'failed'; error: Error } {
    return {
      kind: 'failed',
      error: keyFailure(reply, key, { store: this.#servers.name, operation }),
    };
  }
}

/** The records that were changed. */
function outcomes(
  verb: Changing,
  ids: readonly string[],
  replies: (Error | ScriptReply)[],
): Change[] {
  return ids.flatMap((id, i): Change[] => {
    const reply = replies[i];
    if (!Array.isArray(reply) || reply[0] !== 1) return [];
    return [[id, verb === 'put' ? String(reply[1]) : '-']];
  });
}

function conditionArgs({ fence, ifRevision }: Omit<RecordRef, 'id'>): string[] {
  return [
    fence === undefined ? '' : String(fence),
    ifRevision === undefined ? '' : String(ifRevision),
  ];
}
