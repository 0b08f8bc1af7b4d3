import { describe, expect, it } from 'vitest';
import { seededRandom } from '../src/core/random.ts';
import { open } from '../src/holdfast.ts';
import type { RetentionOptions } from '../src/retention.ts';
import { createMemoryStore } from '../src/store/memory/memory-store.ts';
import type { Store } from '../src/store/port/store.ts';
import { FakeClock } from '../testing/fakes/fake-clock.ts';
import { faultyStore } from '../testing/fakes/faulty-store.ts';

const CALL = { timeoutMs: 5_000 };
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

function setting() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  let opened = 0;
  const instance = async (options?: RetentionOptions, its: Store = store) => {
    const { store: reached, faults } = faultyStore(its, clock);
    const random = seededRandom(++opened);
    const holdfast = await open(reached, { clock, random, history: 'off' });
    const happened: { name: string; [fact: string]: unknown }[] = [];
    for (const name of ['retention.swept', 'sweep.failed'] as const)
      holdfast.on(name, (facts) => happened.push({ name, ...facts }));
    return { holdfast, retention: holdfast.retention(options).start(), faults, happened };
  };
  return { clock, store, instance };
}

/** As many sessions that have ended at once. */
async function endedSessions({ intents }: Store, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const id = `session-${n}`;
    const known = {
      kind: 'live',
      label: 'l',
      keys: [`key-${n}`],
      client: 'ann',
      body: '{}',
      status: '{}',
      priority: 5,
    };
    await intents.start({ id, tenant: 'acme', ...known }, CALL);
    await intents.stop({ id, tenant: null, client: 'ann', force: true, ending: '{}' }, CALL);
  }
}

async function letters({ streams }: Store, stream: string, count: number): Promise<void> {
  const entries = Array.from({ length: count }, (_, n) => {
    return { lane: `lane-${n}`, priority: 5, value: n };
  });
  await streams.append(stream, entries, CALL);
  for (let left = count; left > 0; ) {
    const taking = { ...CALL, consumer: 'c', most: 100, claimMs: MINUTE_MS };
    const held = await streams.consume(stream, taking);
    const dead = held.map(({ lane, fence }) => ({ lane, fence, reason: 'poison' }));
    await streams.bury(stream, dead, CALL);
    left -= held.length;
  }
}

async function left({ intents, streams, log }: Store, stream = 'mails') {
  const [sessions, dead, entries] = await Promise.all([
    intents.list(CALL),
    streams.dead(stream, CALL),
    log.read(CALL),
  ]);
  return [sessions.sessions.length, dead.entries.length, entries.entries.length];
}

describe('retention', () => {
  it('forgets sessions a day after they ended, dead letters after a week, and history after a day', async () => {
    const { clock, store, instance } = setting();
    const { happened } = await instance();
    await endedSessions(store, 2);
    await letters(store, 'mails', 3);
    await store.log.append(['a', 'b', 'c', 'd'], CALL);
    await clock.advance(DAY_MS - MINUTE_MS);
    expect(await left(store)).toEqual([2, 3, 4]);
    await clock.advance(2 * MINUTE_MS);
    expect(await left(store)).toEqual([0, 3, 0]);
    await clock.advance(6 * DAY_MS);
    expect(await left(store)).toEqual([0, 0, 0]);
    expect(happened).toEqual([
      { name: 'retention.swept', sessions: 2, deadLetters: 0, entries: 4 },
      { name: 'retention.swept', sessions: 0, deadLetters: 3, entries: 0 },
    ]);
  });

  it('keeps each kind for its configured time, and work that has not ended permanently', async () => {
    const { clock, store, instance } = setting();
    await instance({ sessions: '5m', deadLetters: '20m', history: '10m' });
    await endedSessions(store, 1);
    const open = { id: 'open', tenant: 'acme', keys: ['open'], client: 'ann', priority: 5 };
    await store.intents.start(
      { ...open, kind: 'live', label: 'l', body: '{}', status: '{}' },
      CALL,
    );
    await letters(store, 'mails', 1);
    await store.log.append(['a'], CALL);
    await clock.advance(7 * MINUTE_MS);
    expect(await left(store)).toEqual([1, 1, 1]);
    await clock.advance(5 * MINUTE_MS);
    expect(await left(store)).toEqual([1, 1, 0]);
    await clock.advance(10 * MINUTE_MS);
    expect(await left(store)).toEqual([1, 0, 0]);
  });

  it('drops of each stream only what is old, the oldest first', async () => {
    const { clock, store, instance } = setting();
    const { happened } = await instance({ deadLetters: '1h' });
    await letters(store, 'mails', 250);
    await letters(store, 'bills', 1);
    await clock.advance(30 * MINUTE_MS);
    await letters(store, 'mails', 2);
    await clock.advance(35 * MINUTE_MS);
    expect((await left(store))[1]).toBe(2);
    expect((await left(store, 'bills'))[1]).toBe(0);
    expect(happened).toMatchObject([{ deadLetters: 251 }]);
  });

  it('a kind that cannot be pruned is reported, and the other kinds are pruned', async () => {
    const { clock, store, instance } = setting();
    const poisoned: Store = {
      ...store,
      intents: {
        ...store.intents,
        prune: () => Promise.reject(new Error('something else lies at its key')),
        list: (call) => store.intents.list(call),
      },
      streams: {
        ...store.streams,
        names: () => Promise.resolve(['broken', 'mails']),
        dead: (stream, call) =>
          stream === 'broken'
            ? Promise.reject(new Error('broken'))
            : store.streams.dead(stream, call),
        drop: (...args) => store.streams.drop(...args),
      },
    };
    const { happened } = await instance(
      { deadLetters: '20m', history: '10m', sessions: '5m' },
      poisoned,
    );
    await letters(store, 'mails', 3);
    await store.log.append(['a'], CALL);
    await clock.advance(30 * MINUTE_MS);
    expect((await left(store)).slice(1)).toEqual([0, 0]);
    const failed = happened.filter(({ name }) => name === 'sweep.failed');
    expect(failed).toMatchObject([{ error: { message: 'something else lies at its key' } }]);
  });

  it('is done by any number of instances without harm, and the shortest time counts', async () => {
    const { clock, store, instance } = setting();
    const crew = [await instance({ sessions: '5m' }), await instance(), await instance()];
    await endedSessions(store, 1_200);
    await clock.advance(7 * MINUTE_MS);
    expect((await left(store))[0]).toBe(0);
    const swept = crew.flatMap(({ happened }) => happened as unknown as { sessions: number }[]);
    expect(swept.reduce((sum, { sessions }) => sum + sessions, 0)).toBe(1_200);
  });

  it('reports that it failed, and continues when the store is back', async () => {
    const { clock, store, instance } = setting();
    const { faults, happened } = await instance({ history: '5m' });
    await store.log.append(['a'], CALL);
    await clock.advance(5 * MINUTE_MS);
    faults.refuse = true;
    await clock.advance(MINUTE_MS);
    expect((await left(store))[2]).toBe(1);
    faults.refuse = false;
    await clock.advance(MINUTE_MS);
    expect((await left(store))[2]).toBe(0);
    expect(happened).toMatchObject([{ name: 'sweep.failed' }, { entries: 1 }]);
  });

  it('ends with the Holdfast it belongs to, and leaves no timer behind', async () => {
    const { clock, instance } = setting();
    const { holdfast } = await instance();
    await holdfast.close();
    expect(clock.pendingTimers).toBe(0);
    expect(() => holdfast.retention()).toThrow(expect.objectContaining({ code: 'CLOSED' }));
  });

  it.each([
    [{ sessions: 0 }, 'retention.sessions'],
    [{ deadLetters: '999ms' }, 'retention.deadLetters'],
    [{ history: '4000d' }, 'retention.history'],
    [{ history: 'long' }, 'retention.history'],
    [{ letters: '1h' }, 'letters'],
  ])('does not take %j', async (options, field) => {
    const { instance } = setting();
    const wrong = expect.objectContaining({ code: 'CONFIG_INVALID', field });
    await expect(instance(options as RetentionOptions)).rejects.toThrow(wrong);
  });
});
