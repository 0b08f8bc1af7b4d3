import { describe, expect, it } from 'vitest';
import { StoreUnreachableError } from '../../../src/core/errors.ts';
import { Emitter, type EventName } from '../../../src/core/events.ts';
import { type NewTarget, TargetStore } from '../../../src/fleet/targets/target-store.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import type { RecordStore } from '../../../src/store/port/record-store.ts';
import type { SignalStore } from '../../../src/store/port/signal-store.ts';
import type { Store } from '../../../src/store/port/store.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { testRuntime } from '../../support/test-runtime.ts';

const NAMES: EventName[] = [
  'session.added',
  'session.paused',
  'session.resumed',
  'session.removed',
];
const CALL = { timeoutMs: 1_000 };

function desk(store: Store = createMemoryStore({ clock: new FakeClock() })) {
  const events = new Emitter();
  const happened: string[] = [];
  for (const name of NAMES)
    events.on(name, (facts) => happened.push(`${name} ${(facts as { session: string }).session}`));
  const sessions = new TargetStore(testRuntime({ store, events }));
  return { store, events, happened, sessions };
}

/** Counts the calls of a store's records, and runs something before one of them. */
function observed(before: (verb: string) => Promise<void> | void = () => {}) {
  const inner = createMemoryStore({ clock: new FakeClock() });
  const calls: string[] = [];
  const records = new Proxy(inner.records, {
    get:
      (target, verb: keyof RecordStore) =>
      async (...args: never[]) => {
        calls.push(verb);
        await before(verb);
        return (target[verb] as (...args: never[]) => unknown).apply(target, args);
      },
  });
  return { inner, store: { ...inner, records }, calls };
}

describe('a target that is added', () => {
  it('is stored as given, with an id of its own', async () => {
    const { sessions, happened, store } = desk();
    const added = await sessions.add({ url: 'http://h/', every: '5s', room: 4 });
    expect(added).toMatchObject({
      url: 'http://h/',
      everyMs: 5_000,
      data: { room: 4 },
      revision: 1,
    });
    expect(await sessions.get(added.id)).toEqual(added);
    expect(happened).toEqual([`session.added ${added.id}`]);
    const [record] = await store.records.get('session', [added.id], CALL);
    const { id } = added;
    expect(record).toMatchObject({
      value: { id, kind: 'poll', url: 'http://h/', everyMs: 5_000, isPaused: false, room: 4 },
    });
  });

  it('is refused if one of the same id exists', async () => {
    const { sessions, happened } = desk();
    await sessions.add({ id: 'a', room: 1 });
    await expect(sessions.add({ id: 'a', room: 2 })).rejects.toMatchObject({
      code: 'SESSION_EXISTS',
      session: 'a',
    });
    expect(await sessions.get('a')).toMatchObject({ data: { room: 1 } });
    expect(happened).toEqual(['session.added a']);
  });

  it('may have an id that a careless program would trip over', async () => {
    const { sessions } = desk();
    for (const id of ['constructor', 'toString', 'hasOwnProperty', '.', '-'])
      await sessions.add({ id });
    const { targets: all } = await sessions.list();
    expect(all.map(({ id }) => id)).toEqual([
      '-',
      '.',
      'constructor',
      'hasOwnProperty',
      'toString',
    ]);
  });

  it.each<[string, unknown, string]>([
    ['nothing', null, 'session'],
    ['text', 'a', 'session'],
    ['an empty id', { id: '' }, 'id'],
    ['an id with a brace', { id: '{a}' }, 'id'],
    ['a URL without a scheme', { url: 'h/a' }, 'url'],
    ['a URL that is a file', { url: 'file:///etc/passwd' }, 'url'],
    ['a kind nobody knows', { kind: 'x' }, 'kind'],
    ['an interval of nothing', { everyMs: Number.NaN }, 'everyMs'],
    ['an interval that is too short', { every: 99 }, 'every'],
    ['data that is no JSON', { big: 1n }, 'session'],
    ['data that contains itself', circular(), 'session'],
    ['data that is too long', { text: 'x'.repeat(70_000) }, 'session'],
  ])('is refused, and nothing sent, for %s', async (_, session, field) => {
    const { store, calls } = observed();
    const { sessions } = desk(store);
    await expect(sessions.add(session as NewTarget)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      field,
    });
    expect(calls).toEqual([]);
  });

  it('does not show a password in its errors', async () => {
    const { sessions } = desk();
    const refused = sessions.add({ url: 'ftp://user:canary@h/canary?canary' });
    await expect(refused).rejects.toThrow('ftp://h');
    await expect(refused).rejects.not.toThrow('canary');
    const nonsense = sessions.add({ url: 'user:canary@' + 'h h' });
    await expect(nonsense).rejects.not.toThrow('canary');
  });
});

function circular(): object {
  const session: Record<string, unknown> = {};
  session.self = session;
  return session;
}

describe('many targets', () => {
  it('are added in few requests, and listed in order of id', async () => {
    const { store, calls } = observed();
    const { sessions, happened } = desk(store);
    const ids = Array.from({ length: 10_000 }, (_, i) => `device-${9_999 - i}`);
    const results = await sessions.addAll(ids.map((id) => ({ id })));
    expect(results.every(({ ok }) => ok)).toBe(true);
    expect(calls.length).toBeLessThanOrEqual(10);
    expect(happened).toHaveLength(10_000);
    const { targets: all, unreadable } = await sessions.list();
    expect(all.map(({ id }) => id)).toEqual([...ids].sort());
    expect(unreadable).toEqual([]);
  });

  it('are added where one exists, each with a result of its own', async () => {
    const { sessions } = desk();
    await sessions.add({ id: 'b' });
    const results = await sessions.addAll([{ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'c' }]);
    expect(results.map(({ ok }) => ok)).toEqual([true, false, true, false]);
    expect(results[1]).toMatchObject({ id: 'b', error: { code: 'SESSION_EXISTS' } });
  });

  it('are not added at all if one is invalid', async () => {
    const { sessions } = desk();
    await expect(sessions.addAll([{ id: 'a' }, { id: 'b b' }])).rejects.toThrow('id is "b b"');
    expect((await sessions.list()).targets).toEqual([]);
  });

  it('P-04 are listed even if one cannot be read, which is reported', async () => {
    const { sessions, store } = desk();
    await sessions.addAll([{ id: 'a' }, { id: 'c' }]);
    await store.records.put('session', [{ id: 'b', value: { isPaused: 'yes' } }], CALL);
    expect(await sessions.list()).toMatchObject({
      sessions: [{ id: 'a' }, { id: 'c' }],
      unreadable: [{ id: 'b', why: 'isPaused: it must be true or false' }],
    });
  });

  it('include what other programs just wrote only with thorough', async () => {
    const { store, calls } = observed();
    const { sessions } = desk(store);
    await sessions.list();
    expect(calls).not.toContain('discover');
    await sessions.list({ thorough: true });
    expect(calls).toContain('discover');
  });
});

describe('P-02 a target that is paused', () => {
  it('is paused and resumed; the second time changes nothing', async () => {
    const { sessions, happened } = desk();
    await sessions.add({ id: 'a' });
    expect(await sessions.pause('a')).toMatchObject({ changed: true, session: { isPaused: true } });
    expect(await sessions.pause('a')).toMatchObject({ changed: false, session: { revision: 2 } });
    expect(await sessions.resume('a')).toMatchObject({ changed: true, session: { revision: 3 } });
    expect(await sessions.resume('a')).toMatchObject({ changed: false });
    expect(happened).toEqual(['session.added a', 'session.paused a', 'session.resumed a']);
  });

  it('keeps the fields of another program', async () => {
    const { sessions, store } = desk();
    const value = { ID: 'a', paused: false, nested: { deep: [1] }, intervalMs: 500 };
    await store.records.put('session', [{ id: 'a', value }], CALL);
    await sessions.pause('a');
    const [record] = await store.records.get('session', ['a'], CALL);
    expect(record).toMatchObject({ value: { ...value, paused: true } });
  });

  it('keeps the change of another operator at the same time', async () => {
    let isDone = false;
    const { inner, store } = observed(async (verb) => {
      if (verb !== 'put' || isDone) return;
      isDone = true;
      await inner.records.put('session', [{ id: 'a', value: { room: 2 } }], CALL);
    });
    await inner.records.put('session', [{ id: 'a', value: { room: 1 } }], CALL);
    const { sessions } = desk(store);
    const result = await sessions.pause('a');
    expect(result).toMatchObject({ changed: true, session: { data: { room: 2 }, revision: 3 } });
    const [record] = await inner.records.get('session', ['a'], CALL);
    expect(record).toMatchObject({ value: { room: 2, isPaused: true } });
  });

  it('gives up against a program that changes it all the time', async () => {
    const { inner, store, calls } = observed(async (verb) => {
      if (verb === 'put') await inner.records.put('session', [{ id: 'a', value: {} }], CALL);
    });
    await inner.records.put('session', [{ id: 'a', value: {} }], CALL);
    const { sessions } = desk(store);
    await expect(sessions.pause('a')).rejects.toMatchObject({ code: 'REVISION_CONFLICT' });
    expect(calls.length).toBeLessThan(100);
  });

  it('is not found if it was removed meanwhile', async () => {
    const { inner, store } = observed(async (verb) => {
      if (verb === 'put') await inner.records.remove('session', [{ id: 'a' }], CALL);
    });
    await inner.records.put('session', [{ id: 'a', value: {} }], CALL);
    const { sessions } = desk(store);
    await expect(sessions.pause('a')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(await sessions.get('a')).toBeNull();
  });

  it('is left alone if its record is invalid, but can be removed', async () => {
    const { sessions, store, happened } = desk();
    await store.records.put('session', [{ id: 'a', value: 'x' }], CALL);
    const unreadable = { code: 'SESSION_UNREADABLE', session: 'a' };
    await expect(sessions.get('a')).rejects.toMatchObject(unreadable);
    await expect(sessions.pause('a')).rejects.toMatchObject(unreadable);
    await sessions.remove('a');
    expect(happened).toEqual(['session.removed a']);
  });
});

describe('P-02 a target that is removed', () => {
  it('is gone, with its last result', async () => {
    const { sessions, store, happened } = desk();
    await sessions.add({ id: 'a' });
    await store.records.put('result', [{ id: 'a', value: {} }], CALL);
    await sessions.remove('a');
    expect(await sessions.get('a')).toBeNull();
    expect(await store.records.get('result', ['a'], CALL)).toEqual([{ kind: 'absent' }]);
    expect(happened).toEqual(['session.added a', 'session.removed a']);
  });

  it('existed: otherwise it is an error', async () => {
    const { sessions, happened } = desk();
    for (const act of [sessions.remove('a'), sessions.pause('a'), sessions.resume('a')])
      await expect(act).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND', session: 'a' });
    expect(happened).toEqual([]);
  });
});

describe('the signal', () => {
  async function heard(store: Store): Promise<string[]> {
    const messages: string[] = [];
    const onMessage = (message: string) => messages.push(message);
    await store.signals.subscribe('sessions', { onMessage, onGap: () => {} });
    return messages;
  }

  it('names the target that changed, and only changes send one', async () => {
    const { sessions, store } = desk();
    const messages = await heard(store);
    await sessions.add({ id: 'a' });
    await sessions.pause('a');
    await sessions.pause('a');
    await sessions.resume('a');
    await sessions.remove('a');
    await sessions.addAll([{ id: 'b' }, { id: 'c' }]);
    await sessions.addAll([{ id: 'b' }, { id: 'c' }]);
    await sessions.addAll([]);
    expect(messages).toEqual(['a', 'a', 'a', 'a', '*']);
  });

  it('may fail without the change failing', async () => {
    const store = createMemoryStore({ clock: new FakeClock() });
    const why = { store: 'memory:', operation: 'publish', why: 'nobody listens' };
    const publish = () => Promise.reject(new StoreUnreachableError(why));
    const signals: SignalStore = { publish, subscribe: store.signals.subscribe };
    const { sessions } = desk({ ...store, signals });
    await sessions.add({ id: 'a' });
    expect(await sessions.pause('a')).toMatchObject({ changed: true });
  });
});

it('ids are UUIDs only, where seed 000 is followed to the letter', async () => {
  const { store, events } = desk();
  const sessions = new TargetStore(testRuntime({ store, events }), 'uuid');
  await expect(sessions.add({ id: 'device-1' })).rejects.toThrow('UUID');
  const { id } = await sessions.add({});
  expect(await sessions.get(id)).toMatchObject({ id });
  const ids = 'ulid' as 'uuid';
  expect(() => new TargetStore(testRuntime({ store, events }), ids)).toThrow("'uuid'");
});
