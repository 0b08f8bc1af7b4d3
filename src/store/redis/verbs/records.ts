import { type Clock, timeLeft } from '../../../core/clock.ts';
import { KeyForeignError } from '../../../core/errors.ts';
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
import { MemberDiscovery } from './member-discovery.ts';
import { RecordIndex, type Told } from './record-index.ts';

type Changing = 'put' | 'remove';
type ScriptReply = [string] | [number] | [number, number];

export class RedisRecords implements RecordStore {
  readonly #keys: Keys;
  readonly #servers: Servers;
  readonly #clock: Clock;
  readonly #index: RecordIndex;
  readonly #discovery: MemberDiscovery;

  constructor(parts: { keys: Keys; servers: Servers; clock: Clock; removalsKept: number }) {
    this.#keys = parts.keys;
    this.#servers = parts.servers;
    this.#clock = parts.clock;
    this.#index = new RecordIndex(parts);
    this.#discovery = new MemberDiscovery({ ...parts, index: this.#index });
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
    return this.#discovery.discover(collection, call);
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
    const isApart = this.#servers.lane !== undefined;
    const ids = changes.map(({ id }) => id);
    // Before anything is sent: it throws for what may not be written.
    const perKey = changes.map(argsOf);
    // A Cluster cannot do both at once. The index goes first, so that nothing is there without being listed; and it is told
    // again afterwards, for those who heard of the record before they could see it.
    const coming = ids.map((id): Told => [id, '+']);
    if (isApart && verb === 'put') await this.#index.announce(collection, coming, leftMs());
    const keys = ids.map((id) => this.#keys.record(collection, id));
    const work = {
      script: scripts[`record/${verb}`],
      keys,
      perKey,
      before: this.#keys.index(collection),
      head: () => [isApart ? '' : this.#index.kept],
    };
    const replies = (await inChunks(this.#servers, work, leftMs)) as (Error | ScriptReply)[];
    if (isApart) await this.#discovery.tell(collection, outcomes(verb, ids, replies), leftMs);
    return replies.map((reply, i) => this.#judged(verb, keys[i] ?? '', reply));
  }

  #judged(verb: Changing, key: string, reply: Error | ScriptReply): number[] | RefusedWrite {
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

/** What became of the records that were changed. */
function outcomes(
  verb: Changing,
  ids: readonly string[],
  replies: (Error | ScriptReply)[],
): Told[] {
  return ids.flatMap((id, i): Told[] => {
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
