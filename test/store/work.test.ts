import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { startStream } from '../../src/store/port/intent-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { HISTORY_KEPT, RESULTS_KEPT, RESULTS_PAGE } from '../../src/store/port/workflow-store.ts';
import { systemHost } from '../../src/store/sqlite/file/host.ts';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/sqlite-store.ts';
import { WORK_TABLES } from '../../src/store/sqlite/tables/work-tables.ts';
import { append, consume, consumeOne, dead, retry } from '../../testing/conformance/consumer.ts';
import { Gateway } from '../../testing/conformance/gateway.ts';
import { CALL, Kit } from '../../testing/conformance/kit.ts';
import { begun, succeed } from '../../testing/conformance/orchestrator.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const START_STREAM = startStream('live');

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${files++}.db`);

const opened: Store[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const store of opened.splice(0)) await store.close();
});

function kitOf(store: Store, clock: FakeClock): Kit {
  return new Kit({ store, elapse: (ms) => clock.advance(ms), dispose: async () => {} });
}

async function openAt(path: string, options: SqliteStoreOptions & { clock?: FakeClock } = {}) {
  const { clock = new FakeClock() } = options;
  const store = await openSqliteStore(path, { ...options, clock });
  opened.push(store);
  return { store, clock, kit: kitOf(store, clock) };
}

function inMemory(): Kit {
  const clock = new FakeClock();
  return kitOf(createMemoryStore({ clock }), clock);
}

const onBoot = (bootId: string) => ({ ...systemHost(), bootId });

describe('another start of the host', () => {
  it('W-13 ends every claim on a delivery, and no rest; what was added stays', async () => {
    const path = newFile();
    const first = await openAt(path, { host: onBoot('one') });
    await append(first.kit, ['held', 1], ['resting', 2], ['waiting', 3]);
    const [held, resting] = await consume(first.kit, { most: 2 });
    if (held === undefined || resting === undefined) throw new Error('nothing to consume');
    await retry(first.kit, resting, 60_000);
    await first.store.close();

    const second = await openAt(path, { host: onBoot('two') });
    const streams = second.store.streams;
    const name = first.kit.topic('stream');
    const call = { ...CALL, consumer: 'c', most: 10, claimMs: 1_000 };
    const given = await streams.consume(name, call);
    expect(given).toMatchObject([
      { lane: 'held', tries: 2 },
      { lane: 'waiting', tries: 1 },
    ]);
    expect(given[0]?.fence).toBeGreaterThan(held.fence);
    expect(await streams.ack(name, [held], CALL)).toEqual(['gone']);
  });

  it('W-01 leaves workflows as they were, for the next who claims', async () => {
    const path = newFile();
    const first = await openAt(path, { host: onBoot('one') });
    const flow = await begun(first.kit);
    await flow.emit('x', 'y');
    await flow.update({ step: 2 });
    await flow.finish();
    const before = await flow.read();
    await first.store.close();

    const { store } = await openAt(path, { host: onBoot('two') });
    expect(await store.workflows.read([flow.id], CALL)).toEqual([before]);
    expect(before).toMatchObject({ epoch: 3, state: { step: 2 }, unresolved: 1, unread: 1 });
  });
});

describe('stores on one file', () => {
  it('with different prefixes never meet in a stream or a workflow', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const a = await openAt(path, { clock, prefix: 'a:' });
    const b = await openAt(path, { clock });
    const flow = await begun(a.kit);
    await flow.emit('x');
    await append(a.kit, ['lane', 1]);
    expect(await b.store.streams.names(CALL)).toEqual([]);
    expect(await b.store.workflows.list(CALL)).toEqual({ ids: [], more: false });
    expect(await b.store.workflows.read([flow.id], CALL)).toEqual([null]);
    const reason = 'not its own';
    const revoked = await b.store.workflows.revoke(flow.leaseId, { ...CALL, reason });
    expect(revoked).toEqual({ kind: 'not-found' });
    const call = { ...CALL, consumer: 'c', most: 10, claimMs: 1_000 };
    expect(await b.store.workflows.take(flow.target, call)).toEqual([]);
  });

  it('with different prefixes never meet in a session', async () => {
    const path = newFile();
    const clock = new FakeClock();
    const a = new Gateway((await openAt(path, { clock, prefix: 'a:' })).kit);
    const store = (await openAt(path, { clock })).store.intents;
    const { id, tenant } = await a.created('x');
    expect(await store.read([id], CALL)).toEqual([null]);
    expect(await store.list(CALL)).toEqual({ sessions: [] });
    expect(await store.republish([id], CALL)).toEqual([]);
    const texts = { body: '{}', status: '{}', ending: '{}' };
    const stop = { id, tenant: null, client: 'client', force: true, ...texts };
    expect(await store.stop(stop, CALL)).toEqual({ kind: 'absent' });
    const keys = [a.kit.topic('key-x')];
    const start = {
      id,
      tenant,
      kind: 'live',
      label: 'x',
      keys,
      client: 'client',
      priority: 5,
      ...texts,
    };
    expect(await store.start(start, CALL)).toMatchObject({ kind: 'created' });
    await a.advanced('x', 'ENDED');
    const prune = { ...CALL, endedBeforeMs: clock.wallMs() + 1, most: 10 };
    expect(await store.prune(prune)).toBe(0);
    expect(await store.read([id], CALL)).toMatchObject([{ state: 'NEW' }]);
  });

  it('gets what it lacks if it was made before there were streams', async () => {
    const path = newFile();
    await (await openAt(path)).store.close();
    const db = new SqliteConnection(path);
    for (const [, table] of WORK_TABLES.matchAll(/CREATE TABLE IF NOT EXISTS (\w+)/g))
      db.exec(`DROP TABLE ${table}`);
    db.close();
    const { kit } = await openAt(path);
    await append(kit, ['lane', 1]);
    expect(await consumeOne(kit)).toMatchObject({ lane: 'lane', value: 1 });
    const gateway = new Gateway(kit);
    const made = await gateway.created('a');
    expect(await gateway.replayed('a')).toEqual(made);
  });
});

describe('a workflow', () => {
  it('keeps the last of its results, and all that nobody has read', async () => {
    const kit = inMemory();
    const flow = await begun(kit);
    const more = 10;
    for (let n = 0; n < RESULTS_KEPT + more; n++) {
      await flow.emit(`x${n}`);
      await flow.finish();
    }
    expect(await flow.read()).toMatchObject({ unread: RESULTS_KEPT + more });
    const known = (n: number) => flow.store.resultOf(flow.id, `x${n}`, CALL);
    expect(await known(0)).toMatchObject({ value: 'x0' });

    const [first, second] = await flow.results();
    const read = [first?.position ?? '', 'no position', ''];
    await flow.store.markRead(flow.id, { ...flow.ref, read }, CALL);
    expect(await known(0)).toBe(null);
    expect(await known(1)).toEqual(second);

    const page = await flow.store.results(flow.id, { ...CALL, most: 10 * RESULTS_PAGE });
    expect([page.results.length, page.more]).toEqual([RESULTS_PAGE, true]);
    expect(page.results[0]).toEqual(second);
    const all = { ...flow.ref, read: page.results.map(({ position }) => position) };
    await flow.store.markRead(flow.id, all, CALL);
    expect(await known(more - 1)).toBe(null);
    expect(await known(more)).toMatchObject({ value: `x${more}` });
    await flow.emit('last');
    await flow.finish();
    expect(await known(more)).toBe(null);
  });

  it('keeps the last of its history', async () => {
    const flow = await begun(inMemory());
    for (let n = 0; n < HISTORY_KEPT + 10; n++) await flow.update(n);
    const entries = await flow.history();
    expect(entries).toHaveLength(HISTORY_KEPT);
    expect(entries[0]?.what).toEqual({ kind: 'updated', state: 10 });
    const after = entries.at(-3)?.position ?? '';
    const page = await flow.store.history(flow.id, { ...CALL, after, most: 1 });
    expect(page).toEqual({ entries: [entries.at(-2)], more: true });
  });

  it('W-13 has no result of an action that was revived, also when it is dropped then', async () => {
    const flow = await begun(inMemory());
    await flow.emit('x');
    await flow.die();
    await flow.revive();
    expect(await flow.store.resultOf(flow.id, 'x', CALL)).toBe(null);
    await flow.revoke();
    const { next, reply } = await succeed(flow);
    expect(reply.dropped).toMatchObject([{ id: 'x' }]);
    expect(await next.store.resultOf(next.id, 'x', CALL)).toBe(null);
    expect(await next.results()).toMatchObject([{ actionId: 'x', outcome: 'dead' }]);
  });

  it('W-13 does not forget over a claim how often an action was tried, nor that it rests', async () => {
    const kit = inMemory();
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    await flow.finish({ outcome: 'retry', afterMs: 1_000 });
    const { next } = await succeed(flow);
    expect(await next.take()).toEqual([]);
    await kit.elapse(1_000);
    expect(await next.takeOne()).toMatchObject({ action: { id: 'x', epoch: 2 }, tries: 2 });
  });

  it('W-11 frees its lease for good, also one that has run out', async () => {
    const kit = inMemory();
    const flow = await begun(kit);
    await kit.elapse(70_000);
    await flow.revoke();
    expect(await kit.reassert(flow.key, flow.leaseId, flow.fence)).toBe('refused');
    expect(await kit.renew(flow.key, flow.leaseId)).toMatchObject({ revoked: true });
  });

  it('W-11 leaves the lease to who has it by now, when an earlier tenure is revoked', async () => {
    const kit = inMemory();
    const flow = await begun(kit);
    await kit.elapse(70_000);
    const fence = await kit.granted(flow.key, 'newcomer');
    expect(await flow.revoke()).toMatchObject({ kind: 'revoked' });
    expect(await kit.read(flow.key)).toMatchObject({ holder: 'newcomer', fence });
  });

  it('W-02 is not changed by a request that no store can carry out', async () => {
    const flow = await begun(inMemory());
    const twins = flow.tryEmit([flow.action('x'), flow.action('x')]);
    await expect(twins).rejects.toThrow(TypeError);
    await expect(flow.update(undefined)).rejects.toThrow(TypeError);
    expect(await flow.read()).toMatchObject({ epoch: 0, unresolved: 0 });
  });
});

describe('a session', () => {
  it('I-13 is there with its keys, its clients and its start after the host has started again', async () => {
    const path = newFile();
    const first = await openAt(path, { host: onBoot('one') });
    const before = await new Gateway(first.kit).created('a');
    await first.store.close();

    const { store } = await openAt(path, { host: onBoot('two') });
    expect(await store.intents.read([before.id], CALL)).toEqual([before]);
    const call = { ...CALL, consumer: 'c', most: 10, claimMs: 1_000 };
    expect(await store.streams.consume(START_STREAM, call)).toMatchObject([{ lane: before.id }]);
  });

  it('I-06 leaves nothing behind in the file', async () => {
    const path = newFile();
    const { kit, store, clock } = await openAt(path);
    const gateway = new Gateway(kit);
    await gateway.created('a', { keys: ['a', 'old'] });
    await gateway.shared('a', ['x', 'y']);
    await gateway.advanced('a', 'ENDED');
    await gateway.created('b', { keys: ['a'] });
    await gateway.stop('b');
    await gateway.ack(...(await gateway.consume()));
    expect(await gateway.prune(clock.wallMs() + 1)).toBe(2);
    await store.close();
    const db = new SqliteConnection(path);
    for (const table of ['sessions', 'session_keys', 'session_clients', 'lanes', 'entries'])
      expect(db.rows(`SELECT * FROM ${table}`)).toEqual([]);
    db.close();
  });

  it('has a place in the list that none has had before, also when the last was forgotten', async () => {
    const kit = inMemory();
    const gateway = new Gateway(kit);
    for (const name of ['a', 'b', 'c']) await gateway.created(name);
    const { cursor = '' } = await gateway.list({ most: 1 });
    const { changedAtMs } = await gateway.advanced('c', 'ENDED');
    await gateway.prune(changedAtMs + 1);
    await gateway.created('d');
    const { sessions } = await gateway.list({ cursor });
    expect(sessions.map(({ id }) => id)).toEqual([gateway.id('b'), gateway.id('a')]);
  });

  it('is never another one, nor spoils what others ask for, when its id is used again', async () => {
    const gateway = new Gateway((await openAt(newFile())).kit);
    const ended = await gateway.at('ENDED', 'a');
    const [twin, other] = await Promise.allSettled([gateway.start('a'), gateway.start('b')]);
    expect(twin).toMatchObject({ status: 'rejected', reason: expect.any(TypeError) });
    expect(other).toMatchObject({ status: 'fulfilled', value: { kind: 'created' } });
    expect(await gateway.read('a')).toEqual(ended);
    // Nor does the key lead to it.
    await gateway.created('c', { keys: ['a'] });
  });

  it('I-13 is not there in part when the store fails in the middle of making it', async () => {
    const gateway = new Gateway(inMemory());
    await gateway.created('a');
    const { run } = SqliteConnection.prototype;
    vi.spyOn(SqliteConnection.prototype, 'run').mockImplementation(function (
      this: SqliteConnection,
      ...args
    ) {
      if (args[0].includes('INTO lanes')) throw new Error('no more');
      return Reflect.apply(run, this, args);
    });
    await expect(gateway.start('b')).rejects.toThrow('no more');
    vi.restoreAllMocks();
    expect(await gateway.listed()).toEqual([gateway.id('a')]);
    await gateway.created('b');
  });
});

it('what is no action in the stream of a target is put aside, and never in the way', async () => {
  const kit = inMemory();
  const flow = await begun(kit);
  const stray = { lane: 'stray', priority: 10, value: { not: 'an action' } };
  await kit.store.streams.append(`action:${flow.target}`, [stray], CALL);
  await flow.emit('x');
  expect(await flow.take()).toMatchObject([{ kind: 'reserved', action: { id: 'x' } }]);
  const aside = await kit.store.streams.dead(`action:${flow.target}`, CALL);
  expect(aside.entries).toMatchObject([{ lane: 'stray', value: { not: 'an action' } }]);
});

/** Each is there for a verb that would otherwise look at all lanes, workflows, results or dead. */
const INDEXES = [
  'lanes_waiting (stream=?)',
  'lanes_due (stream=? AND due>? AND due<?)',
  'dead_of_stream (stream=? AND number>?)',
  'tenures (scope=? AND lease_id=?)',
  'actions_of_target (workflow=? AND target=?)',
  'actions_parked (workflow=?)',
  'results_unread (workflow=? AND position>?)',
  'results_of_action (workflow=? AND action=?)',
  'sessions_made (scope=? AND number<?)',
  'sessions_of_tenant (scope=? AND tenant=? AND number<?)',
  'sessions_open (scope=? AND number<?)',
  'sessions_open_of_tenant (scope=? AND tenant=? AND number<?)',
  'sessions_ended (scope=? AND changed<?)',
  'keys_of_session (session=?)',
];

async function takeEveryStep(gateway: Gateway): Promise<void> {
  await gateway.created('a', { keys: ['a', 'old'] });
  await gateway.shared('a', ['x', 'y']);
  await gateway.ack(...(await gateway.consume()));
  await gateway.republish('a');
  for (const isOpen of [true, false]) {
    await gateway.list({ isOpen });
    await gateway.store.list({ ...CALL, isOpen });
  }
  await gateway.stop('a', { client: 'x' });
  await gateway.stop('a', { force: true });
  await gateway.prune(1);
}

it('no verb walks through what it does not change', async () => {
  const statements = new Set<string>();
  for (const verb of ['run', 'row', 'rows'] as const) {
    const real = SqliteConnection.prototype[verb];
    vi.spyOn(SqliteConnection.prototype, verb).mockImplementation(function (
      this: SqliteConnection,
      sql: string,
      ...values: (string | number | null)[]
    ) {
      statements.add(sql);
      return Reflect.apply(real, this, [sql, ...values]);
    } as never);
  }
  const kit = inMemory();
  const flow = await begun(kit);
  await flow.emit('x', 'y', 'z');
  await flow.die();
  await flow.revive();
  await flow.store.unpark(flow.id, { ...flow.ref, read: [] }, CALL);
  const { next } = await succeed(flow);
  await next.finish();
  await next.results();
  await next.history();
  await next.store.list(CALL);
  await next.reserve({ id: 'z', epoch: 5 }, { strict: true });
  await next.revoke();
  await next.store.remove(next.id, CALL);
  await append(kit, ['lane', 1]);
  await retry(kit, await consumeOne(kit), 0);
  await dead(kit);
  await kit.store.streams.names(CALL);
  await takeEveryStep(new Gateway(kit));
  expect(statements.size).toBeGreaterThan(40);

  const db = new SqliteConnection(':memory:');
  db.exec(WORK_TABLES);
  const plans = [...statements].map((sql): [string, string] => {
    const nulls = Array(sql.split('?').length - 1).fill(null);
    const steps = db.rows<[0, 0, 0, string]>(`EXPLAIN QUERY PLAN ${sql}`, ...nulls);
    return [sql, steps.map(([, , , step]) => step).join('\n')];
  });
  const walks = plans.filter(([, plan]) => /^SCAN|TEMP B-TREE/m.test(plan)).map(([sql]) => sql);
  // A workflow's unresolved actions are sorted where all of them change.
  expect(walks).toEqual([
    expect.stringMatching(/FROM actions WHERE workflow = \? ORDER BY epoch$/),
  ]);
  const used = plans.map(([, plan]) => plan).join('\n');
  for (const index of INDEXES) expect(used).toContain(index);
});
