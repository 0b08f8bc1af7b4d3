import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type SimulatedInstance, type SimulationReport, simulate } from '../../../testing/index.ts';

/** What code kept before any world lived is not replaced. */
const { setTimeout: keptTimer } = globalThis;

/** The shortest simulation there is: one world, one instance, nothing goes wrong. */
function polling(
  poll: (instance: SimulatedInstance, id: string) => unknown,
  allow: readonly string[] = [],
): Promise<SimulationReport> {
  return simulate({
    seed: 1,
    instances: 1,
    duration: 0,
    faults: CALM,
    targets: ['a'],
    allow,
    setup: async (instance) => {
      const { holdfast } = instance;
      await holdfast.poller({ every: '20s', poll: ({ id }) => poll(instance, id) }).start();
    },
  });
}

const CALM = {
  kill: false,
  restart: false,
  freeze: false,
  'lost reply': false,
  'clock step': false,
  'cut off': false,
  'store outage': false,
  'sink outage': false,
  'duplicate delivery': false,
};

const ESCAPES: readonly (readonly [api: string, use: () => unknown])[] = [
  ['setTimeout', () => new Promise((resolve) => setTimeout(resolve, 1))],
  ['setTimeout', () => pause(1)],
  ['setInterval', () => setInterval(() => {}, 1)],
  ['setImmediate', () => new Promise((resolve) => setImmediate(resolve))],
  ['AbortSignal.timeout', () => AbortSignal.timeout(1)],
  ['Date.now', () => Date.now()],
  ['new Date()', () => new Date()],
  ['performance.now', () => performance.now()],
  ['process.hrtime.bigint', () => process.hrtime.bigint()],
  ['Math.random', () => Math.random()],
  ['randomUUID', () => randomUUID()],
  ['randomUUID', () => crypto.randomUUID()],
  ['fetch', () => fetch('http://127.0.0.1:1/')],
];

describe('B-30 code that leaves the simulated world', () => {
  it.each(ESCAPES)('by %s is named, with its line', async (api, use) => {
    const { failure } = await polling(use);
    expect(failure).toMatchObject({ invariant: 'escape', escape: { api } });
    expect(failure?.escape?.at).toMatch(/escapes\.test\.ts:\d+:\d+$/);
    expect(failure?.violation).toMatch(/^your code used .* at .*\. Use .*(clock|random|sink)/);
    expect(failure?.instances).toBe(1);
  });

  it.each([
    ['a real timer', () => new Promise((resolve) => keptTimer(resolve, 1))],
    ['the file system', () => readFile('package.json')],
    ['the network', () => createServer().listen(0).close()],
  ])('by %s is found in the second run of the first seed', async (api, use) => {
    const { failure } = await polling(use);
    expect(failure).toMatchObject({ invariant: 'escape', escape: { api } });
    expect(failure?.escape?.at).toMatch(/escapes\.test\.ts:\d+:\d+$/);
  });

  it('by keeping state from one world to the next is found by comparing two runs', async () => {
    let polls = 0;
    const { failure } = await polling(({ sink }, id) => sink.write(id, ++polls));
    expect(failure).toMatchObject({ invariant: 'escape', escape: null, story: '' });
    expect(failure?.violation).toMatch(/two histories, at first ".* takes 1 from ana", then ".*"/);
  });

  it('is let through where it is allowed', async () => {
    const dates: number[] = [];
    const poll = () => dates.push(Date.now());
    expect((await polling(poll, ['Date.now'])).failure).toBeNull();
    expect(dates.length).toBeGreaterThan(0);
    expect((await polling(poll, ['escape'])).failure).toBeNull();
  });

  it('finds in the world what it needs in place of that', async () => {
    let isFirst = true;
    const report = await polling(async ({ sink, clock, random }, id) => {
      const beganMs = clock.now();
      await clock.sleep(2_000);
      await sink.write(id, { at: new Date(clock.now()), tookMs: clock.now() - beganMs });
      await sink.write(id, [random.hex(32), random.next(), await sink.read(id)]);
      if (isFirst) console.info('what is printed is no escape');
      isFirst = false;
    });
    expect(report.failure).toBeNull();
    expect(report.reached.get('effect')).toBeGreaterThan(2);
  });

  it('finds the real clocks, timers and listeners again afterwards', async () => {
    const real = [setTimeout, Date, Date.now, Math.random, fetch, performance.now];
    const listeners = process.listeners('unhandledRejection');
    await polling(() => Math.random());
    expect([setTimeout, Date, Date.now, Math.random, fetch, performance.now]).toEqual(real);
    expect(process.listeners('unhandledRejection')).toEqual(listeners);
    await new Promise((resolve) => setTimeout(resolve, 1));
  });
});
