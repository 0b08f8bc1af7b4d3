import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

const CALL = { timeoutMs: 500 };
const BEAT = { ...CALL, ttlMs: 60_000 };
const TAKE = { ...CALL, consumer: 'c', most: 1, claimMs: 1_000 };
const WISH = { id: 'i', tenant: 't', keys: ['k'], client: 'c', priority: 5 };
const START = { ...WISH, kind: 'live', label: 'l', body: '{}', status: '{}' };
const STOP = { id: 'i', tenant: null, client: 'c', force: false, ending: '{}' };
const ADVANCE = { ifRevision: 1, state: 'RUNNING', status: '{}' } as const;
const PRUNE = { ...CALL, endedBeforeMs: 0, most: 1 };
const ENTRY = { lane: 'l', priority: 5, value: 1 };

function cutOff() {
  const clock = new FakeClock();
  const real = createMemoryStore({ clock });
  return { clock, real, ...faultyStore(real, clock) };
}

const calls: [string, (store: Store) => Promise<unknown>][] = [
  ['a lease', ({ leases }) => leases.read(['k'], CALL)],
  ['a beat', ({ members }) => members.beat({ id: 'm', attributes: {} }, BEAT)],
  ['the list of members', ({ members }) => members.list(CALL)],
  ['a record', ({ records }) => records.get('c', ['id'], CALL)],
  ['the changes', ({ records }) => records.changes('c', { ...CALL, since: 0 })],
  ['a discovery', ({ records }) => records.discover('c', CALL)],
  ['the log', ({ log }) => log.read(CALL)],
  ['an addition to the log', ({ log }) => log.append([1], CALL)],
  ['a delivery', ({ streams }) => streams.consume('s', TAKE)],
  ['an entry of a stream', ({ streams }) => streams.append('s', [ENTRY], CALL)],
  ['an action', ({ workflows }) => workflows.take('t', TAKE)],
  ['a workflow', ({ workflows }) => workflows.read(['w'], CALL)],
  ['a start', ({ intents }) => intents.start(START, CALL)],
  ['a stop', ({ intents }) => intents.stop(STOP, CALL)],
  ['a change of a session', ({ intents }) => intents.advance('i', ADVANCE, CALL)],
  ['what the stream of starts has lost', ({ intents }) => intents.republish(['i'], CALL)],
  ['a session', ({ intents }) => intents.read(['i'], CALL)],
  ['the list of sessions', ({ intents }) => intents.list(CALL)],
  ['the forgetting of sessions', ({ intents }) => intents.prune(PRUNE)],
  ['a publication', ({ signals }) => signals.publish('topic', 'message')],
];

describe('a store behind a bad connection', () => {
  it.each(calls)('refuses %s at once, and gives it when that is over', async (_, call) => {
    const { store, faults } = cutOff();
    faults.refuse = true;
    await expect(call(store)).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    faults.refuse = false;
    await expect(call(store)).resolves.not.toThrow();
  });

  it.each(calls)('keeps %s waiting to the end of its time', async (_, call) => {
    const { store, faults, clock } = cutOff();
    faults.hang = true;
    const failure = expect(call(store)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await clock.advance(2_000);
    await failure;
  });

  it('carries out what it loses the reply to', async () => {
    const { store, real, faults, clock } = cutOff();
    faults.loseReplies = true;
    const lost = Promise.allSettled([
      store.members.beat({ id: 'm', attributes: {} }, BEAT),
      store.records.put('c', [{ id: 'id', value: 1 }], CALL),
      store.log.append(['entry'], CALL),
      store.streams.append('s', [ENTRY], CALL),
    ]);
    await clock.advance(500);
    expect((await lost).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    expect(await real.members.list(CALL)).toMatchObject([{ id: 'm' }]);
    expect(await real.records.get('c', ['id'], CALL)).toMatchObject([{ value: 1 }]);
    expect(await real.log.read(CALL)).toMatchObject({ entries: [{ value: 'entry' }] });
    expect(await real.streams.consume('s', TAKE)).toMatchObject([{ value: 1 }]);
  });
});

describe('signals over a bad connection', () => {
  async function listening() {
    const parts = cutOff();
    const heard: string[] = [];
    const unsubscribe = await parts.store.signals.subscribe('topic', {
      onMessage: (message) => heard.push(message),
      onGap: () => heard.push('(gap)'),
    });
    return { ...parts, heard, unsubscribe };
  }

  it.each(['hang', 'refuse'] as const)('are silent, and then tell of the gap (%s)', async (how) => {
    const { real, clock, faults, heard } = await listening();
    await real.signals.publish('topic', 'before');
    await clock.advance(0);
    faults[how] = true;
    await real.signals.publish('topic', 'meanwhile');
    await clock.advance(0);
    expect(heard).toEqual(['before']);
    faults[how] = false;
    await real.signals.publish('topic', 'after');
    await clock.advance(0);
    expect(heard).toEqual(['before', '(gap)', 'after']);
  });

  it('tell of one gap when two faults are over', async () => {
    const { clock, faults, heard } = await listening();
    faults.hang = true;
    faults.refuse = true;
    faults.hang = false;
    await clock.advance(0);
    expect(heard).toEqual([]);
    faults.refuse = false;
    faults.refuse = false;
    await clock.advance(0);
    expect(heard).toEqual(['(gap)']);
  });

  it('tell nothing to who has unsubscribed, or could not subscribe', async () => {
    const { store, real, clock, faults, heard, unsubscribe } = await listening();
    unsubscribe();
    faults.refuse = true;
    const late = store.signals.subscribe('topic', {
      onMessage: (message) => heard.push(message),
      onGap: () => heard.push('(gap)'),
    });
    await expect(late).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    faults.refuse = false;
    await real.signals.publish('topic', 'after');
    await clock.advance(0);
    expect(heard).toEqual([]);
  });
});
