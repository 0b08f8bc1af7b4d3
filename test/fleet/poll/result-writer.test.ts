import { describe, expect, it } from 'vitest';
import { KeyForeignError, StoreUnreachableError } from '../../../src/core/errors.ts';
import { Emitter } from '../../../src/core/events.ts';
import { plainCopy } from '../../../src/fleet/poll/plain-data.ts';
import { PollHistory } from '../../../src/fleet/poll/poll-history.ts';
import { ResultWriter } from '../../../src/fleet/poll/result-writer.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import type { PutReply, RecordStore } from '../../../src/store/port/record-store.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { testRuntime } from '../../support/test-runtime.ts';

const CALL = { timeoutMs: 1_000 };
const FINE = { ok: true, tookMs: 5 };

type Put = RecordStore['put'];

/** Results that go to a store in memory, by way of whatever a test puts in between. */
function scene() {
  const clock = new FakeClock();
  const inner = createMemoryStore({ clock });
  const calls: { count: number; atMs: number }[] = [];
  const way: { put?: Put } = {};
  const { records } = inner;
  const put: Put = (collection, writes, call) => {
    calls.push({ count: writes.length, atMs: clock.monotonicMs() });
    return (way.put ?? records.put.bind(records))(collection, writes, call);
  };
  const store = {
    ...inner,
    records: {
      put,
      get: records.get.bind(records),
      remove: records.remove.bind(records),
      changes: records.changes.bind(records),
      discover: records.discover.bind(records),
    },
  };
  const events = new Emitter();
  const happened: unknown[] = [];
  for (const name of ['result.refused', 'result.failed'] as const)
    events.on(name, (facts) => happened.push({ name, ...facts }));
  const make = (instanceId: string) =>
    new ResultWriter(testRuntime({ store, clock, events, instanceId }));
  const stored = async (target: string) => {
    const [reply] = await inner.records.get('result', [target], CALL);
    return reply?.kind === 'found' ? reply.value : null;
  };
  const counts = () => calls.map(({ count }) => count);
  return { clock, inner, way, calls, counts, happened, make, results: make('me'), stored };
}

function refuse(): Promise<never> {
  const why = { store: 'memory:', operation: 'put', why: 'nobody listens' };
  return Promise.reject(new StoreUnreachableError(why));
}

describe('a result', () => {
  it('is written within 100 ms, with the instance that polled and when', async () => {
    const { clock, results, stored } = scene();
    const outcome = { ok: true, tookMs: 12.345, value: { status: 200 } };
    results.record('a', 7, outcome, new PollHistory());
    const at = clock.wallMs();
    await clock.advance(99);
    expect(await stored('a')).toBeNull();
    await clock.advance(1);
    const value = { status: 200 };
    const recent = [[at, 12.3, 1]];
    expect(await stored('a')).toEqual({ at, by: 'me', ok: true, tookMs: 12.3, value, recent });
    expect(results.size).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('of a failed poll says why, in short', async () => {
    const { clock, results, stored } = scene();
    results.record('a', 7, { ok: false, tookMs: 1, error: 'x'.repeat(5_000) });
    await clock.advance(100);
    expect(await stored('a')).toMatchObject({ ok: false, error: 'x'.repeat(500) });
  });

  it('gives way to a newer one of its target', async () => {
    const { clock, results, stored, counts } = scene();
    results.record('a', 7, { ...FINE, value: 1 });
    results.record('a', 7, { ...FINE, value: 2 });
    await clock.advance(100);
    expect(await stored('a')).toMatchObject({ value: 2 });
    expect(counts()).toEqual([1]);
  });

  it('is the value that the poll returned, even if that changes afterwards', async () => {
    const { clock, results, stored } = scene();
    const value = { list: [1] };
    results.record('a', 7, { ...FINE, value });
    value.list.push(2);
    await clock.advance(100);
    expect(await stored('a')).toMatchObject({ value: { list: [1] } });
  });

  it('is dropped when its target is removed', async () => {
    const { clock, results, stored } = scene();
    results.record('a', 7, FINE);
    results.remove('a');
    await clock.advance(100);
    expect(await stored('a')).toBeNull();
  });
});

describe('a late result', () => {
  it('of an owner that has lost the target is refused, and the newer one stays', async () => {
    const { clock, results, make, stored, happened } = scene();
    const zombie = make('zombie');
    results.record('a', 8, { ...FINE, value: 'new' });
    await clock.advance(100);
    zombie.record('a', 7, { ...FINE, value: 'old' });
    zombie.record('b', 7, FINE);
    await clock.advance(100);
    expect(await stored('a')).toMatchObject({ by: 'me', value: 'new' });
    expect(await stored('b')).toMatchObject({ by: 'zombie' });
    expect(happened).toEqual([{ name: 'result.refused', target: 'a', fence: 7, seen: 8 }]);
    expect(zombie.size).toBe(0);
    await clock.advance(60_000);
    expect(happened).toHaveLength(1);
  });

  it('of an earlier tenure of the same instance is refused, too', async () => {
    const { clock, results, stored, happened } = scene();
    results.record('a', 8, { ...FINE, value: 'new' });
    results.record('a', 7, { ...FINE, value: 'old' });
    await clock.advance(100);
    expect(await stored('a')).toMatchObject({ value: 'new' });
    expect(happened).toEqual([{ name: 'result.refused', target: 'a', fence: 7, seen: 8 }]);
  });
});

describe('many results', () => {
  it('are written as soon as there are 200', async () => {
    const { clock, results, calls } = scene();
    for (let i = 0; i < 200; i++) results.record(`d-${i}`, 1, FINE);
    await clock.advance(0);
    expect(calls).toEqual([{ count: 200, atMs: 1_000 }]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('go at least a hundred in a request under load, and never two requests at once', async () => {
    const { clock, results, counts, way, inner } = scene();
    let underWay = 0;
    let mostUnderWay = 0;
    way.put = async (...args) => {
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      await clock.sleep(20);
      underWay--;
      return inner.records.put(...args);
    };
    for (let ms = 0; ms < 2_000; ms++) {
      for (let i = 0; i < 7; i++) results.record(`d-${(ms * 7 + i) % 5_000}`, 1, FINE);
      await clock.advance(1);
    }
    await clock.advance(1_000);
    expect(results.size).toBe(0);
    expect(
      counts()
        .slice(0, -1)
        .every((count) => count >= 100),
    ).toBe(true);
  });

  it('that are flushed while others are on their way go after these', async () => {
    const { clock, results, counts, way, inner } = scene();
    way.put = async (...args) => {
      await clock.sleep(50);
      return inner.records.put(...args);
    };
    for (let i = 0; i < 200; i++) results.record(`d-${i}`, 1, FINE);
    await clock.advance(0);
    results.record('d-0', 1, FINE);
    const flushed = results.flush();
    await clock.advance(49);
    expect(counts()).toEqual([200]);
    await clock.advance(51);
    await flushed;
    expect(counts()).toEqual([200, 1]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('are all written by a flush, without waiting', async () => {
    const { clock, results, stored, counts } = scene();
    for (let i = 0; i < 450; i++) results.record(`d-${i}`, 1, FINE);
    await results.flush();
    expect(results.size).toBe(0);
    expect(await stored('d-449')).not.toBeNull();
    expect(counts()).toEqual([200, 200, 50]);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a store that fails', () => {
  it('is asked again after pauses that grow, for the newest of each target', async () => {
    const { clock, results, stored, calls, way, happened } = scene();
    way.put = refuse;
    results.record('a', 1, { ...FINE, value: 1 });
    await clock.advance(60_000);
    expect(calls.length).toBeGreaterThan(10);
    expect(calls.length).toBeLessThan(20);
    const gaps = calls.slice(1).map(({ atMs }, i) => atMs - (calls[i]?.atMs ?? 0));
    expect(gaps[0]).toBeLessThanOrEqual(200);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(5_000);
    expect(happened[0]).toMatchObject({ name: 'result.failed', count: 1 });
    results.record('a', 1, { ...FINE, value: 2 });
    results.record('b', 1, FINE);
    delete way.put;
    await clock.advance(5_000);
    expect(await stored('a')).toMatchObject({ value: 2 });
    expect(await stored('b')).not.toBeNull();
    expect(results.size).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('does not lead to more than one waiting result of a target', async () => {
    const { clock, results, way } = scene();
    way.put = refuse;
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 300; i++) results.record(`d-${i}`, 1, FINE);
      await clock.advance(1_000);
    }
    expect(results.size).toBe(300);
    delete way.put;
    await clock.advance(10_000);
    expect(results.size).toBe(0);
  });

  it('for one record does not keep back the others', async () => {
    const { clock, results, way, inner, stored, happened } = scene();
    const fails = (error: Error): Put => {
      return async (collection, writes, call) => {
        const replies: PutReply[] = [];
        for (const write of writes) {
          const [reply] = await inner.records.put(collection, [write], call);
          const failed = { kind: 'failed', error } as const;
          replies.push(write.id === 'a' || reply === undefined ? failed : reply);
        }
        return replies;
      };
    };
    way.put = fails(new Error('elsewhere'));
    results.record('a', 1, FINE);
    results.record('b', 1, FINE);
    await clock.advance(100);
    expect(await stored('b')).not.toBeNull();
    expect(happened).toMatchObject([{ name: 'result.failed', count: 1 }]);
    expect(results.size).toBe(1);
    way.put = fails(new KeyForeignError({ key: 'result:a', found: 'a list' }));
    await clock.advance(200);
    expect(happened).toHaveLength(2);
    expect(results.size).toBe(0);
  });

  it('does not put an earlier result in the place of a later one', async () => {
    const { clock, results, way, stored } = scene();
    way.put = async () => {
      await clock.sleep(50);
      return refuse();
    };
    results.record('a', 1, { ...FINE, value: 'earlier' });
    await clock.advance(120);
    results.record('a', 1, { ...FINE, value: 'later' });
    await clock.advance(100);
    delete way.put;
    await clock.advance(1_000);
    expect(await stored('a')).toMatchObject({ value: 'later' });
  });

  it('does not bring back a result that was removed on its way', async () => {
    const { clock, results, way, stored } = scene();
    way.put = async () => {
      await clock.sleep(50);
      return refuse();
    };
    results.record('a', 1, FINE);
    await clock.advance(120);
    results.remove('a');
    await clock.advance(100);
    delete way.put;
    results.record('b', 1, FINE);
    await clock.advance(1_000);
    expect(results.size).toBe(0);
    expect(await stored('a')).toBeNull();
    expect(await stored('b')).not.toBeNull();
  });

  it('does not delay stopping', async () => {
    const { clock, results, way } = scene();
    way.put = async () => {
      await clock.sleep(5_000);
      return refuse();
    };
    for (let i = 0; i < 300; i++) results.record(`d-${i}`, 1, FINE);
    let isClosed = false;
    const closed = results.close(1_000).then(() => {
      isClosed = true;
    });
    await clock.advance(1_000);
    expect(isClosed).toBe(true);
    await closed;
    results.record('x', 1, FINE);
    await clock.advance(60_000);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('what a poll returned', () => {
  class Thing {
    readonly a = 1;
  }
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const deep = Array.from({ length: 100_000 }).reduce<unknown>((inner) => [inner], 1);

  it.each<[unknown, unknown]>([
    [null, null],
    ['text', 'text'],
    [0, 0],
    [false, false],
    [
      [1, [2, {}]],
      [1, [2, {}]],
    ],
    [{ a: { b: undefined, c: 1 } }, { a: { c: 1 } }],
    [Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['x'.repeat(16_000), 'x'.repeat(16_000)],
  ])('is kept if it is data: %j', (value, expected) => {
    expect(plainCopy(value, 16_384)).toEqual(expected);
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['a function', () => {}],
    ['an instance', new Thing()],
    ['an instance inside', { thing: [new Thing()] }],
    ['a Response', new Response('x')],
    ['a date', new Date(0)],
    ['a map', new Map([[1, 2]])],
    ['bytes', new Uint8Array(4)],
    ['a big number', 1n],
    ['no number', Number.NaN],
    ['a symbol', Symbol('a')],
    ['a list with holes', [1, undefined]],
    ['what contains itself', circular],
    ['what is nested without end', deep],
    ['too much text', 'x'.repeat(16_384)],
    ['too much of everything', Array.from({ length: 9_000 }, () => 1)],
    ['names that are too long', { ['x'.repeat(16_384)]: 1 }],
    [
      'what throws when it is looked at',
      {
        get a() {
          throw new Error('no');
        },
      },
    ],
  ])('is not kept if it is %s', (_, value) => {
    expect(plainCopy(value, 16_384)).toBeUndefined();
  });

  it('cannot reach the prototype of anything', () => {
    const copied = plainCopy(JSON.parse('{"__proto__":{"x":1}}'), 100);
    expect(Object.keys(copied as object)).toEqual(['__proto__']);
    expect((copied as { x?: number }).x).toBeUndefined();
  });
});
