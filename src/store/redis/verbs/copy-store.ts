import { createHash } from 'node:crypto';
import { KeyForeignError } from '../../../core/errors.ts';
import {
  byBytes,
  COPIED_WORKFLOWS_PAGE,
  COPY_PAGE,
  isCollection,
  isLeaseKey,
} from '../../copied.ts';
import type {
  CopiedDead,
  CopiedFence,
  CopiedLane,
  CopiedRecord,
  CopiedSession,
  CopyEntries,
  CopyNoun,
  CopyStore,
} from '../../port/copy-store.ts';
import { FENCE_RECORD_MS } from '../../port/lease-store.ts';
import type { RecordStore } from '../../port/record-store.ts';
import { type Call, STORE_FORMAT, UNFINISHED_FORMAT } from '../../port/store.ts';
import type { StoredAction } from '../../port/workflow-store.ts';
import { escapeGlob, fenceOf, leaseOf, siblingOf } from '../keys.ts';
import { scripts } from '../scripts.ts';
import { onlyReply, type Servers } from '../topology/servers.ts';
import { actionOf } from './action-texts.ts';
import { byPosition, CopiedWorkflows, type Facts, factsOf, readHash } from './copied-workflows.ts';
import { addedAtMs, type StreamRow, type WorkConnection } from './work-connection.ts';

/** As `lua/lib/fences.lua` reads a fence record. */
const RECORD = /^(\d+)!?\+?$/;
const FINAL = 'ENDED';

type Command = [string, string, ...string[]];

/**
 * Reads and writes with plain commands: nothing else uses the store meanwhile, and what a killed
 * copy leaves behind is removed by the next.
 */
export class RedisCopyStore implements CopyStore {
  readonly #servers: Servers;
  readonly #work: WorkConnection;
  readonly #records: RecordStore;
  readonly #workflows: CopiedWorkflows;
  /** The last dead entry of each stream that was imported. */
  readonly #dead = new Map<string, { readonly ms: number; readonly n: number }>();

  constructor(servers: Servers, work: WorkConnection, records: RecordStore) {
    this.#servers = servers;
    this.#work = work;
    this.#records = records;
    this.#workflows = new CopiedWorkflows(work);
  }

  async isUnfinished(call: Call): Promise<boolean> {
    const format = await this.#send(['HGET', this.#work.keys.marker, 'format'], call);
    return Number(format) === UNFINISHED_FORMAT;
  }

  async begin(call: Call): Promise<void> {
    await this.#send(['HSET', this.#work.keys.marker, 'format', String(UNFINISHED_FORMAT)], call);
    this.#dead.clear();
    const { hub } = this.#work.keys;
    const names = ['stream', 'workflow', 'intent', 'run'].map((noun) => `${hub}${noun}:`);
    for await (const found of this.#scan(hub, call)) {
      const ours = found.filter((key) => names.some((name) => key.startsWith(name)));
      await this.#each(
        ours,
        (key) => (isLeaseKey(key.slice(hub.length)) ? null : ['DEL', key]),
        call,
      );
    }
    for (const collection of await this.#collections(call)) {
      const index = this.#work.keys.index(collection);
      const ids = await this.#members(index, call);
      const keys = ids.map((id) => this.#work.keys.record(collection, id));
      const all = [...keys, ...keys.map((key) => siblingOf(key, 'meta'))];
      await this.#each(all, (key) => ['DEL', key], call);
      const own = [index, siblingOf(index, 'meta'), siblingOf(index, 'removed')];
      await this.#each(own, (key) => ['DEL', key], call);
    }
  }

  async finish(call: Call): Promise<void> {
    await this.#send(['HSET', this.#work.keys.marker, 'format', String(STORE_FORMAT)], call);
  }

  async fenceClock(call: Call): Promise<number> {
    // Any command asks the server that has the marker: TIME has no key.
    const marker = this.#work.keys.marker;
    const script = "local t = redis.call('TIME') return {t[1], t[2]}";
    const command: Command = ['EVAL', script, '1', marker];
    const reply = await this.#servers.send('copy', marker, command, call.timeoutMs);
    const [seconds, micros] = reply as [string, string];
    return Number(seconds) * 1_000_000 + Number(micros);
  }

  async *export<N extends CopyNoun>(noun: N, call: Call): AsyncGenerator<CopyEntries[N][]> {
    const readers: { readonly [M in CopyNoun]: (call: Call) => AsyncIterable<CopyEntries[M][]> } = {
      fences: (each) => this.#readFences(each),
      records: (each) => this.#readRecords(each),
      workflows: (each) => this.#readWorkflows(each),
      sessions: (each) => this.#readSessions(each),
      streams: (each) => this.#readStreams(each),
      lanes: (each) => this.#readLanes(each),
      dead: (each) => this.#readDead(each),
    };
    for await (const entries of readers[noun](call)) if (entries.length > 0) yield entries;
  }

  async import<N extends CopyNoun>(
    noun: N,
    entries: readonly CopyEntries[N][],
    call: Call,
  ): Promise<void> {
    const writers: {
      readonly [M in CopyNoun]: (entries: readonly CopyEntries[M][]) => Promise<void>;
    } = {
      fences: (all) => this.#writeFences(all, call),
      records: (all) => this.#writeRecords(all, call),
      workflows: async (all) => {
        for (const one of all) await this.#workflows.write(one, call);
      },
      sessions: (all) => this.#writeSessions(all, call),
      streams: (all) =>
        this.#each(all, ({ name }) => ['ZADD', this.#work.keys.streams, '0', name], call),
      lanes: (all) => this.#writeLanes(all, call),
      dead: (all) => this.#writeDead(all, call),
    };
    await writers[noun](entries);
  }

  async *#readFences(call: Call): AsyncGenerator<CopiedFence[]> {
    const { keys } = this.#work;
    const delivered = await this.#send(['HGET', keys.bus, 'fence'], call);
    if (delivered !== null) yield [{ key: null, fence: Number(delivered) }];
    const found = new Map<string, string>();
    for await (const names of this.#scan('fence:', call))
      for (const name of names) {
        const lease = leaseOf(name);
        if (
          lease === null ||
          !lease.startsWith(lease.startsWith(keys.hub) ? keys.hub : keys.prefix)
        )
          continue;
        const key = keys.withoutPrefix(lease);
        if (isLeaseKey(key)) found.set(key, name);
      }
    for (const some of chunks([...found.keys()].sort(byBytes), COPY_PAGE)) {
      const records = await Promise.all(
        some.map((key) => this.#send(['GET', found.get(key) ?? ''], call)),
      );
      yield some.flatMap((key, i) => {
        const fence = fenceIn(records[i]);
        return fence > 0 ? [{ key, fence }] : [];
      });
    }
  }

  async #writeFences(entries: readonly CopiedFence[], call: Call): Promise<void> {
    const { keys } = this.#work;
    for (const { key, fence } of entries) {
      const [name, field] = key === null ? [keys.bus, 'fence'] : [fenceOf(keys.lease(key)), null];
      const read: Command = field === null ? ['GET', name] : ['HGET', name, field];
      if (fenceIn(await this.#send(read, call)) >= fence) continue;
      await this.#send(
        field === null
          ? ['SET', name, String(fence), 'PX', String(FENCE_RECORD_MS)]
          : ['HSET', name, field, String(fence)],
        call,
      );
    }
  }

  async *#readRecords(call: Call): AsyncGenerator<CopiedRecord[]> {
    for (const collection of await this.#collections(call)) {
      const ids = (await this.#members(this.#work.keys.index(collection), call)).sort(byBytes);
      for (const some of chunks(ids, COPY_PAGE)) {
        const replies = await this.#records.get(collection, some, call);
        yield some.flatMap((id, i) => {
          const reply = replies[i];
          if (reply?.kind === 'failed') throw reply.error;
          if (reply?.kind !== 'found') return [];
          const { value, revision, fence } = reply;
          return [{ collection, id, json: JSON.stringify(value), revision, fence }];
        });
      }
    }
  }

  async #writeRecords(entries: readonly CopiedRecord[], call: Call): Promise<void> {
    const { keys } = this.#work;
    await this.#each(
      entries,
      ({ collection, id, json }) => ['SET', keys.record(collection, id), json],
      call,
    );
    await this.#each(
      entries,
      ({ collection, id, json, revision, fence }) => {
        const digest = createHash('sha1').update(json).digest('hex');
        const meta = siblingOf(keys.record(collection, id), 'meta');
        const seen = ['fence', String(fence), 'digest', digest, 'told', String(revision)];
        return ['HSET', meta, 'revision', String(revision), ...seen];
      },
      call,
    );
    const collections = new Set(entries.map(({ collection }) => collection));
    for (const collection of collections) {
      const own = entries.filter((entry) => entry.collection === collection);
      const perKey = [['1000', ...own.flatMap(({ id }) => ['+', id])]];
      const work = { script: scripts['record/announce'], keys: [keys.index(collection)], perKey };
      onlyReply(await this.#servers.run(work, call.timeoutMs));
    }
  }

  async *#readWorkflows(call: Call): AsyncGenerator<CopyEntries['workflows'][]> {
    for (const ids of chunks(
      await this.#members(this.#work.keys.workflows, call),
      COPIED_WORKFLOWS_PAGE,
    )) {
      const found = await Promise.all(ids.map((id) => this.#workflows.read(id, call)));
      yield found.filter((one) => one !== null);
    }
  }

  async *#readSessions(call: Call): AsyncGenerator<CopiedSession[]> {
    const { intents } = this.#work.keys;
    const ids = (await this.#members(`${intents}all`, call)).reverse();
    for (const some of chunks(ids, COPY_PAGE)) {
      const found = await Promise.all(
        some.map(async (id) =>
          this.#session(id, await readHash(this.#work, `${intents}session:${id}`, call), call),
        ),
      );
      yield found.filter((one) => one !== null);
    }
  }

  /** Null for a session that is listed and lost. */
  async #session(id: string, facts: Facts, call: Call): Promise<CopiedSession | null> {
    const { tenant, kind, label, state, body, status } = facts;
    if (state === undefined) return null;
    const texts = [tenant, kind, label, body, status];
    const key = `${this.#work.keys.intents}session:${id}`;
    if (texts.includes(undefined)) throw new KeyForeignError({ key, found: 'no session of ours' });
    const names = Object.keys(facts);
    const isOpen = state !== FINAL;
    const own = isOpen ? names.flatMap((n) => (n.startsWith('key:') ? [facts[n] ?? ''] : [])) : [];
    const led =
      own.length === 0
        ? []
        : ((await this.#send(
            ['HMGET', `${this.#work.keys.intents}keys`, ...own],
            call,
          )) as unknown[]);
    const clients = names.flatMap((name) => (name.startsWith('c:') ? [name.slice(2)] : []));
    return {
      id,
      tenant: tenant ?? '',
      kind: kind ?? '',
      label: label ?? '',
      state,
      revision: Number(facts.revision),
      body: body ?? '',
      status: status ?? '',
      priority: Number(facts.priority),
      clientCount: Number(facts.clients),
      createdMs: Number(facts.created),
      changedMs: Number(facts.changed),
      keys: [...new Set(own.filter((_, i) => led[i] === id))].sort(byBytes),
      clients: isOpen ? clients.sort(byBytes) : [],
    };
  }

  async #writeSessions(entries: readonly CopiedSession[], call: Call): Promise<void> {
    const { intents } = this.#work.keys;
    const first = ['ZRANGE', `${intents}all`, '0', '0', 'WITHSCORES'] as Command;
    const found = (await this.#send(first, call)) as string[];
    let latest = Number(found[1] ?? 0);
    for (const session of entries) {
      latest = Math.min(latest - 1, -1_000 * session.createdMs);
      const commands = sessionCommands(session, intents, String(latest));
      await Promise.all(commands.map((command) => this.#send(command, call)));
    }
  }

  async *#readStreams(call: Call): AsyncGenerator<{ name: string }[]> {
    for (const names of chunks(await this.#members(this.#work.keys.streams, call), COPY_PAGE))
      yield names.map((name) => ({ name }));
  }

  async *#readLanes(call: Call): AsyncGenerator<CopiedLane[]> {
    for (const stream of await this.#members(this.#work.keys.streams, call)) {
      const states = Object.entries(await readHash(this.#work, this.#at('lanes', stream), call));
      const dues = await this.#scores(this.#at('due', stream), call);
      const lanes = states.map(([lane, state = '']) => laneOf(lane, state, dues.get(lane)));
      for (const some of chunks(lanes.sort(byTurn), COPY_PAGE))
        yield Promise.all(
          some.map(async ({ lane, tries, dueUs, isClaimed }) => {
            const list = await this.#send(['LRANGE', this.#laneAt(stream, lane), '0', '-1'], call);
            const entries = (list as string[]).map((text) => entryOf(stream, text));
            return { stream, lane, tries, dueUs, isClaimed, entries };
          }),
        );
    }
  }

  async #writeLanes(entries: readonly CopiedLane[], call: Call): Promise<void> {
    for (const { stream, lane, tries, dueUs, entries: own } of entries) {
      const [first] = own;
      if (first === undefined) continue;
      const texts = own.map(({ priority, json }) => {
        return `${priority} ${isOfActions(stream) ? String(JSON.parse(json)) : json}`;
      });
      for (const some of chunks(texts, COPY_PAGE))
        await this.#send(['RPUSH', this.#laneAt(stream, lane), ...some], call);
      let state = `p ${tries}`;
      if (dueUs === null) {
        const bus = this.#at(`bus:${first.priority}`, stream);
        const id = await this.#send(['XADD', bus, '*', 'l', lane], call);
        state = `w ${first.priority} ${id}`;
      } else await this.#send(['ZADD', this.#at('due', stream), String(dueUs), lane], call);
      await this.#send(['HSET', this.#at('lanes', stream), lane, state], call);
    }
  }

  async *#readDead(call: Call): AsyncGenerator<CopiedDead[]> {
    for (const stream of await this.#members(this.#work.keys.streams, call)) {
      let after = '-';
      let rows: StreamRow[];
      do {
        const args: Command = [
          'XRANGE',
          this.#work.keys.deadOf(stream),
          after,
          '+',
          'COUNT',
          String(COPY_PAGE),
        ];
        rows = (await this.#send(args, call)) as StreamRow[];
        yield rows.map((row) => deadOf(stream, row));
        after = `(${rows.at(-1)?.[0]}`;
      } while (rows.length === COPY_PAGE);
    }
  }

  async #writeDead(entries: readonly CopiedDead[], call: Call): Promise<void> {
    for (const { stream, lane, json, tries, reason, atMs } of entries) {
      const last = this.#dead.get(stream) ?? { ms: 0, n: 0 };
      const ms = Math.max(last.ms, atMs);
      const n = last.n + 1;
      this.#dead.set(stream, { ms, n });
      const fields = ['l', lane, 't', String(tries), 'r', reason, ...deadValue(stream, json)];
      await this.#send(['XADD', this.#work.keys.deadOf(stream), `${ms}-${n}`, ...fields], call);
    }
  }

  async #collections(call: Call): Promise<string[]> {
    const beginning = this.#work.keys.index('');
    const found = new Set<string>();
    for await (const names of this.#scan(beginning, call))
      for (const name of names) found.add(name.slice(beginning.length));
    return [...found].filter(isCollection).sort(byBytes);
  }

  /** The names of keys with a beginning: each at least once. */
  async *#scan(beginning: string, { timeoutMs }: Call): AsyncGenerator<readonly string[]> {
    let cursor: string | undefined;
    do {
      const page = await this.#servers.scan(`${escapeGlob(beginning)}*`, cursor, timeoutMs, 'any');
      yield page.names;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** All members of a sorted set, in order. */
  async #members(key: string, call: Call): Promise<string[]> {
    return [...(await this.#scores(key, call)).keys()];
  }

  async #scores(key: string, call: Call): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    let rows: string[];
    do {
      const from = found.size;
      const range = [String(from), String(from + 5 * COPY_PAGE - 1), 'WITHSCORES'];
      rows = (await this.#send(['ZRANGE', key, ...range], call)) as string[];
      for (let i = 0; i < rows.length; i += 2) found.set(rows[i] ?? '', Number(rows[i + 1]));
    } while (rows.length === 10 * COPY_PAGE);
    return found;
  }

  async #each<T>(
    items: readonly T[],
    command: (item: T) => Command | null,
    call: Call,
  ): Promise<void> {
    for (const some of chunks(items, COPY_PAGE))
      await Promise.all(
        some.map((item) => {
          const args = command(item);
          return args && this.#send(args, call);
        }),
      );
  }

  #at(part: string, stream: string): string {
    return `${this.#work.keys.hub}stream:${part}:${stream}`;
  }

  #laneAt(stream: string, lane: string): string {
    return `${this.#work.keys.hub}stream:lane:{${stream}}:${lane}`;
  }

  #send(args: Command, call: Call): Promise<unknown> {
    return this.#work.send('copy', args, call);
  }
}

function* chunks<T>(items: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

/** 0 for none, and for a value of another program. */
function fenceIn(record: unknown): number {
  return Number(RECORD.exec(String(record ?? ''))?.[1] ?? 0);
}

function isOfActions(stream: string): boolean {
  return stream.startsWith('action:');
}

function sessionCommands(session: CopiedSession, intents: string, place: string): Command[] {
  const { id, tenant, kind, label, state, keys, clients } = session;
  const isOpen = state !== FINAL;
  const open = isOpen ? [`open`, `open:${tenant}`, `of:open:${kind}`] : [];
  const all = ['all', `all:${tenant}`, `of:all:${kind}`, `label:${kind}:${label}`, ...open];
  const facts: Record<string, string | number> = {
    tenant,
    kind,
    label,
    state,
    revision: session.revision,
    body: session.body,
    status: session.status,
    clients: session.clientCount,
    created: session.createdMs,
    changed: session.changedMs,
    priority: session.priority,
    keys: keys.length,
    ...Object.fromEntries(keys.map((key, i) => [`key:${i + 1}`, key])),
    ...Object.fromEntries(clients.map((client) => [`c:${client}`, ''])),
  };
  const fields = Object.entries(facts).flatMap(([field, value]) => [field, String(value)]);
  const commands: Command[] = [
    ['HSET', `${intents}session:${id}`, ...fields],
    ...all.map((index): Command => ['ZADD', `${intents}${index}`, place, id]),
    ...keys.map((key): Command => ['HSET', `${intents}keys`, key, id]),
  ];
  if (!isOpen) commands.push(['ZADD', `${intents}ended`, String(session.changedMs), id]);
  return commands;
}

interface LaneState extends Omit<CopiedLane, 'stream' | 'entries'> {
  /** Where it waits on the bus; null if it does not. */
  readonly turn: { readonly priority: number; readonly id: string } | null;
}

/** As `lua/lib/lanes.lua` keeps the state of a lane. */
function laneOf(lane: string, state: string, due: number | undefined): LaneState {
  const [, priority, id] = /^w (\d+) (.+)$/.exec(state) ?? [];
  const turn = id === undefined ? null : { priority: Number(priority), id };
  const tries = Number(/^(?:h \d+|p) (\d+)/.exec(state)?.[1] ?? 0);
  const dueUs = turn === null ? (due ?? 0) : null;
  return { lane, tries, dueUs, isClaimed: state.startsWith('h'), turn };
}

function byTurn(a: LaneState, b: LaneState): number {
  if (a.turn === null || b.turn === null)
    return a.turn === b.turn ? byBytes(a.lane, b.lane) : a.turn === null ? 1 : -1;
  return b.turn.priority - a.turn.priority || byPosition(a.turn.id, b.turn.id);
}

/** `<priority> <entry>`: the entry of an action is its id. */
function entryOf(stream: string, text: string): { priority: number; json: string } {
  const space = text.indexOf(' ');
  const entry = text.slice(space + 1);
  const json = isOfActions(stream) ? JSON.stringify(entry) : entry;
  return { priority: Number(text.slice(0, space)), json };
}

function deadOf(stream: string, [position, fields]: StreamRow): CopiedDead {
  const facts = factsOf(fields);
  const { l: lane = '', t: tries, r: reason = '', v, a, w = '' } = facts;
  const json = a === undefined ? (v ?? 'null') : JSON.stringify(actionOf(a, w));
  return { stream, lane, json, tries: Number(tries), reason, atMs: addedAtMs(position) };
}

function deadValue(stream: string, json: string): string[] {
  // Beside actions there are entries that no workflow knew.
  if (!isOfActions(stream) || !json.startsWith('{')) return ['v', json];
  const { id, target, priority, body, leaseId, epoch } = JSON.parse(json) as StoredAction;
  return ['a', id, 'w', [epoch, leaseId, target, priority, body].join('\n')];
}
