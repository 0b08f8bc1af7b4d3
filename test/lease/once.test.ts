import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { seededRandom } from '../../src/core/random.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import type { OnceOptions } from '../../src/lease/once.ts';
import type { RunRecord } from '../../src/lease/period.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import fc from '../support/fast-check.ts';
import { world } from '../support/world.ts';

const HOURLY: OnceOptions = { per: '1h', tolerance: '1m' };
const HOUR_MS = 3_600_000;
const CALL = { timeoutMs: 1_000 };

/** A host whose wall clock is off by `offsetMs()`. */
function skewed(clock: FakeClock, offsetMs: () => number): Clock {
  return {
    startedAtMs: clock.startedAtMs,
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs() + offsetMs(),
    after: (ms, run) => clock.after(ms, run),
    soon: (run) => clock.soon(run),
    afterInput: (run) => clock.afterInput(run),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}

async function recordOf({ records }: Store, key: string): Promise<RunRecord> {
  const [reply] = await records.get('once', [key], CALL);
  if (reply?.kind !== 'found') throw new Error('no record');
  return reply.value as RunRecord;
}

describe('holdfast.once', () => {
  it('B-09 the first caller runs the job; later ones are told who ran it, when, and from when on it runs again', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const startMs = clock.wallMs();
    const running = a.holdfast.once('nightly', HOURLY, async ({ fence, assertHeld }) => {
      await clock.sleep(50);
      assertHeld();
      return fence;
    });
    await clock.advance(50);
    const ran = await running;
    expect(ran).toMatchObject({ ok: true, startedAt: new Date(startMs) });
    if (ran.ok) expect(ran.value).toBe(ran.fence);
    expect(await b.holdfast.once('nightly', HOURLY, () => 'again')).toEqual({
      ok: false,
      reason: 'done',
      key: 'nightly',
      holder: `${a.holdfast.instanceId}/0`,
      startedAt: new Date(startMs),
      endedAt: new Date(startMs + 50),
      nextAt: new Date(startMs + HOUR_MS - 60_000),
    });
  });

  it('B-09 a call while the job runs is told who runs it, even in the same process', async () => {
    const { clock, actor } = world();
    const a = await actor();
    const startMs = clock.wallMs();
    const first = a.holdfast.once('nightly', HOURLY, () => clock.sleep(2 * HOUR_MS));
    await clock.advance(10);
    const second = await a.holdfast.once('nightly', HOURLY, () => 'again');
    expect(second).toMatchObject({
      ok: false,
      reason: 'running',
      holder: `${a.holdfast.instanceId}/0`,
      startedAt: new Date(startMs),
    });
    // A job longer than its period: the fire in the middle does not run, the one after the end does.
    await clock.advance(HOUR_MS);
    expect(await a.holdfast.once('nightly', HOURLY, () => 1)).toMatchObject({ reason: 'running' });
    await clock.advance(HOUR_MS);
    expect((await first).ok).toBe(true);
    expect(await a.holdfast.once('nightly', HOURLY, () => 2)).toMatchObject({ ok: true, value: 2 });
  });

  it('B-09 three hosts with clocks half a tolerance apart run a job of 50 ms once per fire', async () => {
    const { clock, store, actor } = world();
    const offsets = [30_000, 0, -30_000];
    const hosts = await Promise.all(
      offsets.map((offsetMs) => actor({ clock: skewed(clock, () => offsetMs) })),
    );
    for (let fire = 1; fire <= 5; fire++) {
      const atMs = clock.wallMs() - (clock.wallMs() % HOUR_MS) + HOUR_MS;
      let runs = 0;
      for (const [i, { holdfast }] of hosts.entries()) {
        await clock.advance(atMs - (offsets[i] ?? 0) - clock.wallMs());
        const running = holdfast.once('nightly', HOURLY, async () => {
          runs++;
          await clock.sleep(50);
        });
        await clock.advance(100);
        await running;
      }
      expect(runs).toBe(1);
    }
    expect((await recordOf(store, 'nightly')).holder).toContain('actor1');
  });

  it('B-09 a job that fails has run: its error is thrown, and the period is used, even with retry', async () => {
    const { actor } = world();
    const { holdfast } = await actor();
    const options: OnceOptions = { ...HOURLY, onCrash: 'retry' };
    const failing = holdfast.once('nightly', options, () => {
      throw new Error('disk full');
    });
    await expect(failing).rejects.toThrow('disk full');
    expect(await holdfast.once('nightly', options, () => 1)).toMatchObject({ reason: 'done' });
    expect((await holdfast.inspect('nightly')).kind).toBe('free');
  });

  it('B-09 after a crash, skip leaves the period used; retry starts over once the lease has expired', async () => {
    for (const onCrash of ['skip', 'retry'] as const) {
      const { clock, actor } = world();
      const [a, b] = [await actor(), await actor()];
      const options: OnceOptions = { ...HOURLY, onCrash };
      let runs = 0;
      void a.holdfast
        .once('nightly', options, ({ signal }) => {
          runs++;
          return clock.sleep(HOUR_MS, signal);
        })
        .catch(() => {});
      await clock.advance(10);
      a.faults.hang = true;
      await clock.advance(20_000);
      expect(await b.holdfast.once('nightly', options, () => 0)).toMatchObject({
        reason: 'running',
      });
      await clock.advance(11_000);
      const second = await b.holdfast.once('nightly', options, () => ++runs);
      if (onCrash === 'skip') expect(second).toMatchObject({ reason: 'done', endedAt: null });
      else expect(second).toMatchObject({ ok: true, value: 2 });
      // Started over or not, the period is that of the first start: the next fire is not late.
      await clock.advance(HOUR_MS - 60_000 - 31_010);
      expect(await b.holdfast.once('nightly', options, () => 3)).toMatchObject({ ok: true });
    }
  });

  it('B-09 with wait, a host takes over from one that died in the middle', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const options: OnceOptions = { ...HOURLY, onCrash: 'retry', wait: '5m' };
    void a.holdfast.once('nightly', options, () => new Promise(() => {}));
    await clock.advance(10);
    const waiting = b.holdfast.once('nightly', options, () => 'taken over');
    await clock.advance(5_000);
    a.faults.hang = true;
    await clock.advance(40_000);
    expect(await waiting).toMatchObject({ ok: true, value: 'taken over' });
  });

  it('B-09 a holder that stood still after its grant, and wakes in the run of another, does not begin', async () => {
    const { clock, store, actor } = world();
    const [a, b] = [await actor(), await actor()];
    let runs = 0;
    const { get } = store.records;
    let frozen = true;
    // The grant has been answered; the read of the record is not, until another has run the job.
    store.records.get = async (...args) => {
      if (!frozen) return get.apply(store.records, args);
      frozen = false;
      await clock.sleep(60_000);
      return [{ kind: 'absent' }];
    };
    const late = a.holdfast.once('nightly', HOURLY, () => ++runs).catch((error: Error) => error);
    await clock.advance(10);
    a.faults.hang = true;
    await clock.advance(35_000);
    expect(await b.holdfast.once('nightly', HOURLY, () => ++runs)).toMatchObject({ ok: true });
    a.faults.hang = false;
    await clock.advance(60_000);
    expect(await late).toMatchObject({ code: 'LEASE_LOST' });
    expect(runs).toBe(1);
    expect((await recordOf(store, 'nightly')).holder).toContain('actor2');
  });

  it('B-09 a holder that stands still over the boundary does not undo the record of the next period', async () => {
    const { clock, store, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const first = a.holdfast.once('nightly', HOURLY, () => clock.sleep(2 * HOUR_MS));
    await clock.advance(10);
    a.faults.hang = true;
    await clock.advance(HOUR_MS);
    const nextMs = clock.wallMs();
    expect(await b.holdfast.once('nightly', HOURLY, () => 1)).toMatchObject({ ok: true });
    a.faults.hang = false;
    await clock.advance(HOUR_MS);
    expect((await first).ok).toBe(true);
    expect(await recordOf(store, 'nightly')).toMatchObject({ startedAtMs: nextMs });
  });

  it('B-09 the end of a run is on record before its lease is released', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const options: OnceOptions = { ...HOURLY, onCrash: 'retry', wait: '1m' };
    const first = a.holdfast.once('nightly', options, async () => {
      await clock.sleep(50);
      a.faults.refuse = true;
    });
    await clock.advance(10);
    const waiting = b.holdfast.once('nightly', options, () => 'again');
    await clock.advance(3_000);
    a.faults.refuse = false;
    await clock.advance(5_000);
    expect((await first).ok).toBe(true);
    expect(await waiting).toMatchObject({ ok: false, reason: 'done' });
  });

  it('B-09 a store that has lost its records runs the job again', async () => {
    const { clock, store, actor } = world();
    const { holdfast } = await actor();
    await holdfast.once('nightly', HOURLY, () => 1);
    await store.records.remove('once', [{ id: 'nightly' }], CALL);
    await clock.advance(1_000);
    expect(await holdfast.once('nightly', HOURLY, () => 2)).toMatchObject({ ok: true, value: 2 });
  });

  it('B-09 a store whose clock was far ahead is an error, and never a second run', async () => {
    const { clock, actor } = world();
    const { holdfast } = await actor();
    clock.jumpWall(365 * 24 * HOUR_MS);
    await holdfast.once('nightly', HOURLY, () => 1);
    clock.jumpWall(-365 * 24 * HOUR_MS);
    await clock.advance(2 * HOUR_MS);
    const again = holdfast.once('nightly', HOURLY, () => 2);
    await expect(again).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    await expect(again).rejects.toThrow(/'nightly' ran at 2027-01-01T00:00:00.000Z by the store's/);
  });

  it('B-09 the record of another program is refused, and nothing runs', async () => {
    const { store, actor } = world();
    const { holdfast } = await actor();
    for (const value of [null, 7, { periodAtMs: 'soon' }, { periodAtMs: 1, startedAtMs: 1 }]) {
      await store.records.put('once', [{ id: 'k', value }], CALL);
      await expect(holdfast.once('k', HOURLY, () => 1)).rejects.toMatchObject({
        code: 'KEY_FOREIGN',
      });
    }
    expect((await holdfast.inspect('k')).kind).toBe('free');
  });

  it('B-09 invalid input is refused before anything is written', async () => {
    const { store, actor } = world();
    const { holdfast } = await actor();
    const bad: [OnceOptions, RegExp][] = [
      [{ per: '1m', tolerance: '30s' }, /^per is "1m": a period is longer than twice/],
      [{ ...HOURLY, ttl: '1h' }, /^ttl is "1h"/],
      [{ ...HOURLY, holder: 'me' } as OnceOptions, /^holder is "me": unknown option/],
    ];
    for (const [options, message] of bad)
      await expect(holdfast.once('k', options, () => 1)).rejects.toThrow(message);
    await expect(holdfast.once('{k}', HOURLY, () => 1)).rejects.toThrow(/^key is/);
    await expect(holdfast.once('k', HOURLY, 'x' as never)).rejects.toThrow(/^work is "x"/);
    expect(await store.records.get('once', ['k'], CALL)).toEqual([{ kind: 'absent' }]);
    expect(await holdfast.inspect('k')).toEqual({ kind: 'free', fence: 0 });
  });
});

interface Fire {
  readonly jobMs: number;
  readonly delaysMs: readonly number[];
  /** How far the clock of one host is stepped after this fire, within the tolerance. */
  readonly steps: readonly number[];
}

const TOLERANCE_MS = 60_000;
/** Clocks and delays share the tolerance. */
const CLOCK_MS = 20_000;
const DELAY_MS = 20_000;

const host = fc.integer({ min: -CLOCK_MS, max: CLOCK_MS });
const fireArbitrary: fc.Arbitrary<Fire> = fc.record({
  jobMs: fc.oneof(fc.constant(50), fc.integer({ min: 0, max: HOUR_MS / 3 })),
  delaysMs: fc.array(fc.integer({ min: 0, max: DELAY_MS }), { minLength: 3, maxLength: 3 }),
  steps: fc.array(host, { minLength: 3, maxLength: 3 }),
});

describe('holdfast.once, as a property', () => {
  it('B-09 clock offsets, steps between fires, delays and job lengths: one run per fire', async () => {
    const fires = fc.array(fireArbitrary, { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fires, async (all) => {
        const clock = new FakeClock({ wallMs: Date.UTC(2026, 2, 29) });
        const store = createMemoryStore({ clock });
        const offsets = [0, 0, 0];
        const hosts = await Promise.all(
          offsets.map((_, i) =>
            openHost(
              store,
              skewed(clock, () => offsets[i] ?? 0),
              i,
            ),
          ),
        );
        const runs = new Map<number, number>();
        const calls: Promise<unknown>[] = [];
        for (const [n, { jobMs, delaysMs, steps }] of all.entries()) {
          const fireMs = Date.UTC(2026, 2, 29) + (n + 1) * HOUR_MS;
          for (const [i, holdfast] of hosts.entries()) {
            const inMs = fireMs - (offsets[i] ?? 0) + (delaysMs[i] ?? 0) - clock.wallMs();
            clock.after(inMs, () => {
              const work = async () => {
                runs.set(n, (runs.get(n) ?? 0) + 1);
                await clock.sleep(jobMs);
              };
              calls.push(holdfast.once('nightly', HOURLY, work));
            });
          }
          await clock.advance(fireMs + HOUR_MS / 2 - clock.wallMs());
          for (const [i, step] of steps.entries()) offsets[i] = step;
          expect(runs.get(n)).toBe(1);
        }
        await Promise.all(calls);
      }),
      { numRuns: 60 },
    );
  });

  it('B-09 any calls by hosts with any clocks, with two periods on one key: starts keep their distance', async () => {
    const call = fc.record({
      gapMs: fc.integer({ min: 0, max: HOUR_MS }),
      host: fc.integer({ min: 0, max: 2 }),
      per: fc.constantFrom('1h', '2h'),
      jobMs: fc.integer({ min: 0, max: HOUR_MS }),
    });
    const offset = fc.integer({ min: -40 * HOUR_MS, max: 40 * HOUR_MS });
    const offsets = fc.tuple(offset, offset, offset);
    const calls = fc.array(call, { minLength: 2, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(offsets, calls, async (offsetsMs, all) => {
        const clock = new FakeClock();
        const store = createMemoryStore({ clock });
        const hosts = await Promise.all(
          offsetsMs.map((ms, i) =>
            openHost(
              store,
              skewed(clock, () => ms),
              i,
            ),
          ),
        );
        const starts: number[] = [];
        const asked: Promise<unknown>[] = [];
        for (const { gapMs, host: i, per, jobMs } of all) {
          await clock.advance(gapMs);
          const beforeMs = starts.at(-1) ?? Number.NEGATIVE_INFINITY;
          const perMs = per === '1h' ? HOUR_MS : 2 * HOUR_MS;
          const work = () => {
            expect(clock.wallMs() - beforeMs).toBeGreaterThanOrEqual(perMs - TOLERANCE_MS);
            starts.push(clock.wallMs());
            return clock.sleep(jobMs);
          };
          // A host that is far behind may find the record ahead of it: it says so, and does not run.
          const refused = (error: { code?: string }) => expect(error.code).toBe('STORE_UNSUITABLE');
          asked.push(
            (hosts[i] as Holdfast).once('k', { per, tolerance: '1m' }, work).catch(refused),
          );
          await clock.advance(0);
        }
        await clock.advance(2 * HOUR_MS);
        await Promise.all(asked);
        expect(starts.length).toBeGreaterThan(0);
      }),
      { numRuns: 60 },
    );
  });
});

function openHost(store: Store, clock: Clock, seed: number): Promise<Holdfast> {
  return open(store, { clock, random: seededRandom(seed + 1), name: `host${seed}` });
}
