import { describe, expect, it } from 'vitest';
import { KeyForeignError, StoreUnreachableError } from '../../../src/core/errors.ts';
import { Emitter, type Events } from '../../../src/core/events.ts';
import { TargetWatch } from '../../../src/fleet/targets/target-watch.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import {
  CHANGES_PAGE,
  type GetReply,
  REMOVALS_KEPT,
  type RecordStore,
} from '../../../src/store/port/record-store.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';

const CALL = { timeoutMs: 1_000 };

type Replace = Partial<{
  get(ids: readonly string[], replies: GetReply[]): GetReply[] | Promise<GetReply[]>;
  changes: RecordStore['changes'];
}>;

/** A watch on a store in memory, whose answers a test may replace on their way. */
function scene() {
  const clock = new FakeClock();
  const inner = createMemoryStore({ clock });
  const replace: Replace = {};
  const calls: string[] = [];
  const records: RecordStore = {
    get: async (collection, ids, call) => {
      calls.push('get');
      const replies = await inner.records.get(collection, ids, call);
      return replace.get?.(ids, replies) ?? replies;
    },
    put: (...args) => inner.records.put(...args),
    remove: (...args) => inner.records.remove(...args),
    changes: (...args) => {
      calls.push('changes');
      return (replace.changes ?? inner.records.changes.bind(inner.records))(...args);
    },
    discover: (...args) => {
      calls.push('discover');
      return inner.records.discover(...args);
    },
  };
  const events = new Emitter();
  const unreadable: Events['session.unreadable'][] = [];
  events.on('session.unreadable', (facts) => unreadable.push(facts));
  const watch = new TargetWatch({ ...inner, records }, 'any', events);
  const put = async (id: string, value: unknown = {}) => {
    await inner.records.put('session', [{ id, value }], CALL);
  };
  const remove = async (id: string) => {
    await inner.records.remove('session', [{ id }], CALL);
  };
  const refresh = async () => [...(await watch.refresh())].sort();
  const known = () => [...watch.records.keys()].sort();
  return { inner, replace, calls, events, unreadable, watch, put, remove, refresh, known };
}

function unreachable(): Error {
  return new StoreUnreachableError({ store: 'memory:', operation: 'get', why: 'gone' });
}

describe('a target feed', () => {
  it('reads all targets, and then what changes', async () => {
    const { put, remove, refresh, known, watch } = scene();
    await put('a', { room: 1 });
    await put('b');
    expect(await refresh()).toEqual(['a', 'b']);
    expect(await refresh()).toEqual([]);
    await put('a', { room: 2 });
    await remove('b');
    await put('c');
    expect(await refresh()).toEqual(['a', 'b', 'c']);
    expect(known()).toEqual(['a', 'c']);
    expect(watch.records.get('a')).toMatchObject({ data: { room: 2 }, revision: 2 });
  });

  it('requests only changes where nothing has changed', async () => {
    const { put, refresh, calls } = scene();
    await put('a');
    await refresh();
    calls.length = 0;
    await refresh();
    expect(calls).toEqual(['changes']);
  });

  it('reads thousands in pages', async () => {
    const { put, refresh, watch, calls } = scene();
    for (let i = 0; i < 2 * CHANGES_PAGE + 1; i++) await put(`device-${i}`);
    expect(await refresh()).toHaveLength(2 * CHANGES_PAGE + 1);
    expect(watch.records.size).toBe(2 * CHANGES_PAGE + 1);
    expect(calls).toEqual(['changes', 'get', 'changes', 'get', 'changes', 'get']);
  });

  it('P-02 reads all of them, however many others were removed since', async () => {
    const { put, remove, refresh, watch } = scene();
    for (let i = 0; i < CHANGES_PAGE + 500; i++) await put(`device-${i}`);
    for (let i = 0; i <= REMOVALS_KEPT; i++) await put(`old-${i}`);
    for (let i = 0; i <= REMOVALS_KEPT; i++) await remove(`old-${i}`);
    expect(await refresh()).toHaveLength(CHANGES_PAGE + 500);
    expect(watch.records.size).toBe(CHANGES_PAGE + 500);
  });

  it('P-02 misses no removal, even if a target that was removed after it returns', async () => {
    const { put, remove, refresh, known } = scene();
    for (let i = 0; i < REMOVALS_KEPT + 500; i++) await put(`device-${i}`);
    await refresh();
    for (let i = 0; i < REMOVALS_KEPT + 500; i++) await remove(`device-${i}`);
    await put('device-1499');
    await refresh();
    expect(known()).toEqual(['device-1499']);
  });

  it('does not report a target as changed that was only announced twice', async () => {
    const { put, refresh, replace, inner } = scene();
    await put('a');
    await refresh();
    replace.changes = async (collection, call) => {
      const page = await inner.records.changes(collection, call);
      return { ...page, written: ['a'] };
    };
    expect(await refresh()).toEqual([]);
  });

  it('refreshes one after the other, so that a later one reads every change before it', async () => {
    const { put, watch, replace } = scene();
    await put('a');
    let release = () => {};
    const asked = new Promise<void>((onAsked) => {
      replace.get = (_, replies) => {
        onAsked();
        return new Promise((resolve) => {
          release = () => resolve(replies);
        });
      };
    });
    const first = watch.refresh();
    await asked;
    await put('b');
    delete replace.get;
    const second = watch.refresh();
    release();
    expect([...(await first)]).toEqual(['a']);
    expect([...(await second)]).toEqual(['b']);
  });

  it('shares the empty data of all targets without other fields', async () => {
    const { put, refresh, watch } = scene();
    await put('a', { id: 'a', url: 'http://h/' });
    await put('b');
    await refresh();
    expect(watch.records.get('a')?.data).toBe(watch.records.get('b')?.data);
  });
});

describe('P-04 a record that cannot be read', () => {
  it('is reported once for each revision, and does not affect the others', async () => {
    const { put, refresh, known, unreadable, watch } = scene();
    await put('a');
    await put('b', { isPaused: 'yes' });
    await put('c');
    expect(await refresh()).toEqual(['a', 'c']);
    await refresh();
    expect(unreadable).toEqual([{ session: 'b', why: 'isPaused: it must be true or false' }]);
    await put('b', { isPaused: 'no' });
    await refresh();
    expect(unreadable).toHaveLength(2);
    expect(known()).toEqual(['a', 'c']);
    expect([...watch.unreadable.keys()]).toEqual(['b']);
  });

  it('stays what it was when it could be read, until it can be again', async () => {
    const { put, refresh, watch } = scene();
    await put('a', { room: 1 });
    await refresh();
    await put('a', 'nonsense');
    expect(await refresh()).toEqual([]);
    expect(watch.records.get('a')).toMatchObject({ data: { room: 1 } });
    await put('a', { room: 3 });
    expect(await refresh()).toEqual(['a']);
    expect(watch.records.get('a')).toMatchObject({ data: { room: 3 } });
    expect(watch.unreadable.size).toBe(0);
  });

  it('is gone when it has been removed', async () => {
    const { put, remove, refresh, watch } = scene();
    await put('a');
    await refresh();
    await put('a', 'nonsense');
    await refresh();
    await remove('a');
    expect(await refresh()).toEqual(['a']);
    expect(watch.unreadable.size).toBe(0);
  });

  it('may be no JSON at all, and is not asked for again and again', async () => {
    const { put, refresh, known, replace, unreadable, calls } = scene();
    await put('a');
    await refresh();
    await put('a');
    await put('b');
    const error = new KeyForeignError({ key: 'session:a', found: 'text that is no JSON' });
    replace.get = (ids, replies) =>
      replies.map((reply, i) => (ids[i] === 'a' ? { kind: 'failed', error } : reply));
    expect(await refresh()).toEqual(['b']);
    expect(known()).toEqual(['a', 'b']);
    expect(unreadable).toEqual([{ session: 'a', why: 'session: it is text that is no JSON' }]);
    calls.length = 0;
    await refresh();
    expect(calls).toEqual(['changes']);
  });

  it('is read again if the store failed, and is not reported for that', async () => {
    const { put, refresh, known, replace, unreadable, watch } = scene();
    await put('a');
    await put('b');
    replace.get = (ids, replies) =>
      replies.map((reply, i) =>
        ids[i] === 'a' ? { kind: 'failed', error: unreachable() } : reply,
      );
    expect(await refresh()).toEqual(['b']);
    expect([...watch.unread.keys()]).toEqual(['a']);
    delete replace.get;
    expect(await refresh()).toEqual(['a']);
    expect(known()).toEqual(['a', 'b']);
    expect(unreadable).toEqual([]);
    expect(watch.unread.size).toBe(0);
  });
});

describe('a store that fails', () => {
  it('makes a refresh fail, and the next one returns every change since the last that did not', async () => {
    const { put, watch, refresh, replace, known } = scene();
    for (let i = 0; i < CHANGES_PAGE + 10; i++) await put(`device-${i}`);
    let calls = 0;
    replace.get = async (_, replies) => {
      if (++calls === 2) throw unreachable();
      return replies;
    };
    await expect(watch.refresh()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(known()).toHaveLength(CHANGES_PAGE);
    expect(await refresh()).toHaveLength(CHANGES_PAGE + 10);
  });

  it('and has lost the removals is listed again; nothing is dropped before that is complete', async () => {
    const { put, remove, refresh, known, replace, inner, watch } = scene();
    await put('kept');
    for (let i = 0; i < CHANGES_PAGE; i++) await put(`device-${i}`);
    await refresh();
    await remove('device-7');
    await put('new', { room: 1 });
    let since: number[] = [];
    replace.changes = async (collection, call) => {
      since.push(call.since);
      if (since.length === 1)
        return { written: [], removed: [], version: call.since, more: false, reset: true };
      if (since.length === 3) throw unreachable();
      return inner.records.changes(collection, call);
    };
    await expect(watch.refresh()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(since.slice(0, 2)).toEqual([expect.any(Number), 0]);
    expect(known()).toContain('device-7');
    since = [1, 2, 3];
    const changed = await refresh();
    expect(changed).toContain('device-7');
    expect(changed).toContain('new');
    expect(known()).not.toContain('device-7');
    expect(known()).toHaveLength(CHANGES_PAGE + 1);
  });

  it('and reports data loss is listed again, as new records would hide it', async () => {
    const { put, remove, refresh, known, replace, events, inner } = scene();
    await put('a');
    await put('b');
    await refresh();
    await remove('b');
    replace.changes = async (collection, call) => {
      const page = await inner.records.changes(collection, call);
      return { ...page, removed: [] };
    };
    await put('c');
    await refresh();
    expect(known()).toEqual(['a', 'b', 'c']);
    events.emit('store.forgot', { store: 'memory:', why: 'flushed' });
    expect(await refresh()).toContain('b');
    expect(known()).toEqual(['a', 'c']);
  });

  it('and reports data loss during a refresh is listed from the beginning', async () => {
    const { put, refresh, known, replace, events } = scene();
    await put('a');
    await put('b');
    let calls = 0;
    replace.get = (_, replies) => {
      if (++calls === 1) events.emit('store.forgot', { store: 'memory:', why: 'flushed' });
      return replies;
    };
    expect(await refresh()).toEqual(['a', 'b']);
    expect(known()).toEqual(['a', 'b']);
    expect(calls).toBe(2);
  });

  it('P-02 and loses data faster than it can be listed makes a refresh fail', async () => {
    const { put, refresh, replace, watch } = scene();
    await put('a');
    await refresh();
    let calls = 0;
    replace.changes = async (_, { since }) => {
      calls++;
      if (since > 0) return { written: [], removed: [], version: since, more: false, reset: true };
      return { written: ['a'], removed: [], version: 5, more: true, reset: false };
    };
    await expect(watch.refresh()).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringContaining("'session' were to be listed from the beginning 5 times"),
    });
    expect(calls).toBeLessThan(20);
    expect(watch.records.has('a')).toBe(true);
  });

  it('and counts revisions from 1 again shows the new record, even with the old number', async () => {
    const { put, remove, refresh, watch, events, replace } = scene();
    await put('a', { room: 1 });
    await refresh();
    await remove('a');
    await put('a', { room: 2 });
    replace.get = (_, replies) =>
      replies.map((reply) => (reply.kind === 'found' ? { ...reply, revision: 1 } : reply));
    events.emit('store.forgot', { store: 'memory:', why: 'flushed' });
    expect(await refresh()).toEqual(['a']);
    expect(watch.records.get('a')).toMatchObject({ data: { room: 2 } });
  });
});

describe('hints', () => {
  it('come with every signal, until the subscription ends', async () => {
    const { watch, inner } = scene();
    let hints = 0;
    const stop = await watch.listen(() => hints++);
    await inner.signals.publish('sessions', 'a');
    await inner.signals.publish('fleet', 'a');
    expect(hints).toBe(1);
    stop();
    await inner.signals.publish('sessions', 'a');
    expect(hints).toBe(1);
  });

  it('come where signals may have been lost, too', async () => {
    const { inner } = scene();
    let onGap = () => {};
    const store = {
      ...inner,
      signals: {
        publish: inner.signals.publish,
        subscribe: async (_: string, subscriber: { onGap(): void }) => {
          onGap = () => subscriber.onGap();
          return () => {};
        },
      },
    };
    let hints = 0;
    await new TargetWatch(store).listen(() => hints++);
    onGap();
    expect(hints).toBe(1);
  });
});

it('FR-011 a discovery finds what other programs wrote', async () => {
  const { watch, calls } = scene();
  expect(await watch.discover()).toBe(0);
  expect(calls).toEqual(['discover']);
});

it('a closed feed listens to nothing', async () => {
  const { watch, events, put, refresh, calls } = scene();
  await put('a');
  await refresh();
  watch.close();
  events.emit('store.forgot', { store: 'memory:', why: 'flushed' });
  calls.length = 0;
  await refresh();
  expect(calls).toEqual(['changes']);
});
