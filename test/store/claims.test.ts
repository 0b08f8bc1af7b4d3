/** Handing over while a store that may have forgotten grants makes no new ones: on a simulated Redis, and on a file. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/port/store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { CALL, Kit } from '../../testing/conformance/kit.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { restartingRedis } from '../support/restarting-redis.ts';

const TTL_MS = 5_000;
const WINDOW_MS = 2_000;
const K = 'lease:k';

interface World {
  readonly clock: FakeClock;
  open(): Promise<Store>;
  /** The store comes back with its data as it was when it was last saved: it may have forgotten what it granted since. */
  save(): void;
  restore(): Promise<void>;
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function onRedis(): Promise<World> {
  const clock = new FakeClock();
  const { connect, restart } = await restartingRedis(clock);
  let savedMs = 0;
  return {
    clock,
    open: () => connect(),
    save: () => {
      savedMs = clock.monotonicMs();
    },
    restore: async () => restart(clock.monotonicMs() - savedMs),
  };
}

async function onFile(): Promise<World> {
  const clock = new FakeClock();
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'test.db');
  let saved: Buffer[] = [];
  const ends = ['', '-wal'];
  return {
    clock,
    open: () => openSqliteStore(path, { clock }),
    save: () => {
      saved = ends.map((end) => readFileSync(path + end));
    },
    restore: async () => {
      for (const end of [...ends, '-shm']) rmSync(path + end, { force: true });
      // Takes the number that the file had.
      writeFileSync(`${path}.other`, '');
      for (const [i, end] of ends.entries()) writeFileSync(path + end, saved[i] ?? '');
    },
  };
}

const stores: [string, () => Promise<World>][] = [
  ['Redis', onRedis],
  ['a file', onFile],
];

describe.each(stores)('a quarantine on %s', (_, make) => {
  /** Giver, successor and a third, each a process of its own; `a` holds the key. */
  async function world() {
    const { clock, open, save, restore } = await make();
    const client = async () => {
      const store = await open();
      closing.push(() => store.close());
      return new Kit({ store, elapse: (ms) => clock.advance(ms), dispose: async () => {} });
    };
    const [a, b, c] = [await client(), await client(), await client()];
    const fence = await a.granted(K, 'a', { ttlMs: TTL_MS });
    await clock.advance(10);
    const forget = async () => {
      await restore();
      for (const kit of [a, b, c]) await kit.read(K);
      expect(await c.acquire('lease:free', 'c')).toMatchObject({ reason: 'quarantine' });
    };
    const hand = async (from: Kit, holder: string, held: number, successor: string) => {
      const handover = { key: K, holder, fence: held, successor };
      const [reply] = await from.store.leases.transfer([handover], {
        ...CALL,
        windowMs: WINDOW_MS,
      });
      expect(reply).toMatchObject({ kind: 'transferred' });
      return reply?.kind === 'transferred' ? reply.fence : 0;
    };
    const ask = (kit: Kit, holder: string) => kit.acquire(K, holder, { ttlMs: TTL_MS });
    return { clock, a, b, c, fence, save, forget, hand, ask };
  }
  const REFUSED = { kind: 'busy', reason: 'quarantine' };

  it('B-07 lets the successor claim what it is handed, with a higher fence, and nobody else', async () => {
    const { a, b, c, fence, save, forget, hand, ask } = await world();
    save();
    await forget();
    const offered = await hand(a, 'a', fence, 'b');
    expect(await ask(c, 'c')).toMatchObject(REFUSED);
    const claimed = await ask(b, 'b');
    expect(claimed).toMatchObject({ kind: 'granted' });
    expect(claimed.kind === 'granted' && claimed.fence).toBeGreaterThan(offered);
    expect(await b.renew(K, 'b', TTL_MS)).toEqual({ kind: 'renewed' });
    expect(await ask(a, 'a')).toMatchObject(REFUSED);
  });

  it('B-07 lets a holder hand a key to itself, to get a higher fence than it was told of', async () => {
    const { a, fence, save, forget, hand } = await world();
    save();
    await forget();
    await hand(a, 'a', fence, 'a');
    const fenceFloor = fence + 10_000_000_000;
    expect(await a.granted(K, 'a', { ttlMs: TTL_MS, fenceFloor })).toBe(fenceFloor);
  });

  it('K-15 grants nobody what was handed over before it: who was handed it may have handed it on', async () => {
    const { a, b, clock, fence, save, forget, hand, ask } = await world();
    await hand(a, 'a', fence, 'b');
    save();
    await clock.advance(10);
    expect(await ask(b, 'b')).toMatchObject({ kind: 'granted' });
    await forget();
    expect(await b.read(K)).toMatchObject({ kind: 'held', holder: 'b' });
    expect(await ask(b, 'b')).toMatchObject(REFUSED);
  });

  it('K-15 grants nobody what the store names it for from before', async () => {
    const { a, save, forget, ask } = await world();
    save();
    await forget();
    expect(await ask(a, 'a')).toMatchObject(REFUSED);
  });

  it('K-15 grants what was handed over once', async () => {
    const { a, b, c, fence, save, forget, hand, ask } = await world();
    save();
    await forget();
    await hand(a, 'a', fence, 'b');
    const claimed = await ask(b, 'b');
    expect(claimed).toMatchObject({ kind: 'granted' });
    expect(await ask(b, 'b')).toMatchObject(REFUSED);
    expect(await b.release(K, 'b', claimed.kind === 'granted' ? claimed.fence : 0)).toMatchObject({
      kind: 'released',
    });
    expect(await ask(c, 'c')).toMatchObject(REFUSED);
  });

  it('B-07 grants anyone what its successor has not claimed in time', async () => {
    const { a, b, c, clock, fence, save, forget, hand, ask } = await world();
    save();
    await forget();
    await hand(a, 'a', fence, 'b');
    await clock.advance(WINDOW_MS - 100);
    expect(await ask(c, 'c')).toMatchObject(REFUSED);
    await clock.advance(101);
    expect(await ask(c, 'c')).toMatchObject({ kind: 'granted' });
    expect(await ask(b, 'b')).toMatchObject(REFUSED);
  });

  it('K-15 of a later loss grants nothing that was handed over in an earlier one', async () => {
    const { a, b, fence, save, forget, hand, ask } = await world();
    save();
    await forget();
    await hand(a, 'a', fence, 'b');
    save();
    await forget();
    expect(await ask(b, 'b')).toMatchObject(REFUSED);
  });
});

it('B-07 a successor whose host has slept, and that is in quarantine for longer, claims what it is handed', async () => {
  const clock = new FakeClock();
  const { connect, restart } = await restartingRedis(clock);
  const [giver, successor] = [await connect(), await connect(new FakeClock())];
  closing.push(
    () => giver.close(),
    () => successor.close(),
  );
  const [a, b] = [giver, successor].map(
    (store) => new Kit({ store, elapse: (ms) => clock.advance(ms), dispose: async () => {} }),
  ) as [Kit, Kit];
  const fence = await a.granted(K, 'a', { ttlMs: TTL_MS });
  restart();
  for (const kit of [a, b]) await kit.read(K);
  // The bound and a second: it is over for every client whose clock continues.
  for (let i = 0; i < 31; i++) {
    await clock.advance(1_001);
    expect(await a.renew(K, 'a', TTL_MS)).toEqual({ kind: 'renewed' });
  }
  await a.granted('lease:free', 'a', { ttlMs: TTL_MS });
  expect(await b.acquire('lease:other', 'b', { ttlMs: TTL_MS })).toMatchObject({
    reason: 'quarantine',
  });
  const handover = { key: K, holder: 'a', fence, successor: 'b' };
  await giver.leases.transfer([handover], { ...CALL, windowMs: WINDOW_MS });
  expect(await b.acquire(K, 'b', { ttlMs: TTL_MS })).toMatchObject({ kind: 'granted' });
});
