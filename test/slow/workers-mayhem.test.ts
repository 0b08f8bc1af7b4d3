import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { type Random, seededRandom } from '../../src/core/random.ts';
import { REASONS } from '../../src/intents/intent-session.ts';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { redisGrounds, sqliteGrounds } from '../integration/support/intent-ground.ts';
import { TTL_MS, type WorkerProcess, WorkerWorld } from '../integration/support/worker-ground.ts';
import { until } from '../support/until.ts';

leaveNothingBehind();

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

/** A seed repeats what is asked for and what is done to whom, not the run: processes keep a pace of their own. */
const SEED = Number(process.env.HOLDFAST_SEED ?? 8);
const INTENTS = 500;
const CHANNELS = 300;
/** How many are asked for at once, and how long until the next: more than 4 slots can do, so that most have to wait. */
const BURST = 10;
const BURST_EVERY_MS = 60;
const NAMES = ['one', 'two', 'three'];
const BLOWS = 16;
const BLOW_EVERY_MS = { least: 200, most: 900 };
const SETTLE_MS = 90_000;

class Mayhem {
  readonly #world: WorkerWorld;
  /** Two, so that what is asked for does not depend on how fast workers are started again. */
  readonly #asking: Random;
  readonly #striking: Random;
  /** Those that live and are awake. */
  readonly #workers = new Map<string, WorkerProcess>();
  readonly #everyone: WorkerProcess[] = [];
  readonly #reviving: Promise<void>[] = [];
  readonly #started: string[] = [];

  constructor(world: WorkerWorld, seed: number) {
    this.#world = world;
    this.#asking = seededRandom(seed);
    this.#striking = seededRandom(seed + 1);
  }

  /** How many were killed and started again. */
  get kills(): number {
    return this.#everyone.length - NAMES.length;
  }

  /** What went wrong in any of them without anybody being told. */
  get unhandled(): unknown[] {
    return this.#everyone.flatMap((worker) => worker.told('unhandled'));
  }

  /** All that is asked for, and all that is done to the workers meanwhile; at last all of them live. */
  async rage(): Promise<void> {
    await Promise.all(NAMES.map((name) => this.#start(name)));
    await Promise.all([this.#ask(), this.#strike()]);
    await Promise.all(this.#reviving);
  }

  async #ask(): Promise<void> {
    for (let asked = 0; asked < INTENTS; asked += BURST) {
      await Promise.all(Array.from({ length: BURST }, () => this.#askOne()));
      await sleep(BURST_EVERY_MS);
    }
  }

  async #askOne(): Promise<void> {
    const [dice, which] = [this.#asking.next(), this.#asking.next()];
    const victim =
      dice < 0.15 ? this.#started[Math.floor(which * this.#started.length)] : undefined;
    if (victim !== undefined) {
      await this.#world.stop(victim);
      return;
    }
    const profile = dice < 0.3 ? 'sd' : 'hd';
    const channel = `channel-${Math.floor(which * CHANNELS)}`;
    this.#started.push(await this.#world.start(channel, { profile }));
  }

  async #strike(): Promise<void> {
    const { least, most } = BLOW_EVERY_MS;
    const { next } = this.#striking;
    for (let blow = 0; blow < BLOWS; blow++) {
      await sleep(least + next() * (most - least));
      const name = NAMES[Math.floor(next() * NAMES.length)] ?? '';
      const [dice, laterMs] = [next(), next() * 2 * TTL_MS];
      const worker = this.#workers.get(name);
      if (worker === undefined) continue;
      this.#workers.delete(name);
      const reviving = this.#strikeOne(name, worker, dice, laterMs);
      // Whoever waits for it hears of it.
      reviving.catch(() => {});
      this.#reviving.push(reviving);
    }
  }

  /** Kills it, and starts it again at once, or in a while; or has it stand still, for less than its leases last, or for longer. */
  async #strikeOne(name: string, worker: WorkerProcess, dice: number, laterMs: number) {
    if (dice < 0.2) {
      await worker.freeze();
      await sleep(laterMs);
      await worker.child.thaw();
      this.#workers.set(name, worker);
      return;
    }
    worker.child.signal('SIGKILL');
    if (dice < 0.4) await sleep(laterMs);
    await this.#start(name);
  }

  async #start(name: string): Promise<void> {
    const worker = await this.#world.worker({
      ...{ name, resources: { tuners: { slots: 4, wait: '120s' } } },
      pipelines: { live: this.#world.smallPipeline(20, 100) },
    });
    this.#workers.set(name, worker);
    this.#everyone.push(worker);
  }
}

async function expectPeace(world: WorkerWorld, mayhem: Mayhem): Promise<void> {
  const open = async () => (await world.sessions()).filter(({ state }) => state !== 'ENDED');
  const isOver = async () => (await open()).length === 0;
  await until(isOver, { what: 'all to end', deadlineMs: SETTLE_MS, every: 100 }).catch(() => {});
  expect(await open()).toEqual([]);
  world.expectSound();
  const sessions = await world.sessions();
  for (const { reason } of sessions) expect(REASONS).toContain(reason);
  await world.expectAllFree(TTL_MS + 5_000);
  expect(world.survivors()).toEqual([]);
  expect(mayhem.unhandled).toEqual([]);
  const runs = world.pipelines();
  const hasRun = (id: string) => runs.some(({ session, isEnded }) => session === id && isEnded);
  const completed = sessions.filter(({ outcome }) => outcome === 'COMPLETED');
  expect(completed.filter(({ id }) => !hasRun(id))).toEqual([]);
  // It was no peace of the grave, nor one without a war.
  expect(completed.length).toBeGreaterThan(sessions.length / 4);
  expect(mayhem.kills).toBeGreaterThanOrEqual(3);
}

describe.concurrent.each(GROUNDS)('500 intents for 3 workers and 4 slots, over $name,', (kind) => {
  it('I-13 I-11 I-12 while workers are killed with -9 at random and started again: each session ends with a reason, no slot leaks, and no two pipelines are on one at once, by their own record', async () => {
    await using world = await WorkerWorld.on(kind);
    const mayhem = new Mayhem(world, SEED);
    try {
      await mayhem.rage();
      await expectPeace(world, mayhem);
    } catch (error) {
      const { message } = error as Error;
      throw new Error(`with seed ${SEED}: ${message}`, { cause: error });
    }
  }, 180_000);
});
