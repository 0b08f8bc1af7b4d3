import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis } from './redis.mjs';
import { monotonicMs } from './statistics.mjs';
import { TaskProcess } from './task-process.mjs';

const LOOK_EVERY_MS = 20;
const SETTLE_DEADLINE_MS = 25_000;

/** What measures with many processes work with: a store for each of them, and the instances on it. */
export class ProcessBench {
  #instances = new Set();
  #stops = new Set();
  #file;

  /** `file` is what an instance runs. */
  constructor({ plan, progress, file }) {
    this.plan = plan;
    this.progress = progress;
    this.#file = file;
  }

  /** Runs `measure(redis)` on a Redis that nobody has used before; whatever is left of it then is stopped. */
  async onRedis(measure) {
    const redis = await startRedis();
    this.#stops.add(redis.stop);
    try {
      return await measure(redis);
    } finally {
      await this.reset();
    }
  }

  /** The same on a SQLite file: `measure({ url })`. */
  async onSqlite(measure) {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
    const remove = () => rmSync(dir, { recursive: true, force: true });
    process.once('exit', remove);
    this.#stops.add(async () => {
      process.off('exit', remove);
      remove();
    });
    try {
      return await measure({ url: `sqlite:${join(dir, 'bench.db')}` });
    } finally {
      await this.reset();
    }
  }

  /** A process with the store open in it. */
  async instance(url) {
    const instance = new TaskProcess('an instance', this.#file, [url]);
    this.#instances.add(instance);
    await instance.ask('open');
    return instance;
  }

  /** A process that takes part; `facts` as for the task `start`. */
  async member(url, facts) {
    const instance = await this.instance(url);
    await instance.ask('start', facts);
    return instance;
  }

  async reset() {
    await Promise.all([...this.#instances].map((instance) => instance.stop()));
    this.#instances.clear();
    // Only now: an instance that sees its store go complains.
    await Promise.all([...this.#stops].map((stop) => stop()));
    this.#stops.clear();
  }
}

/** How a bench begins whose measures have a Redis each: `file` is what its processes run. */
export function onRedisServers(file) {
  return async (plan, progress) => {
    const { version, stop } = await startRedis();
    await stop();
    const bench = new ProcessBench({ plan, progress, file });
    const reset = () => bench.reset();
    return { bench, facts: `Redis ${version}`, reset, stop: reset };
  };
}

/** Waits until all of the targets are owned, by each member as many as by any other, give or take one. */
export async function untilEven(members, targets) {
  await until(`${targets} targets shared out evenly`, async () => {
    const all = await Promise.all(members.map((member) => member.ask('owned')));
    const counts = all.map(({ length }) => length);
    const total = counts.reduce((sum, count) => sum + count, 0);
    return total === targets && Math.max(...counts) - Math.min(...counts) <= 1;
  });
}

export async function until(what, isSo) {
  const untilMs = monotonicMs() + SETTLE_DEADLINE_MS;
  while (!(await isSo())) {
    if (monotonicMs() > untilMs) throw new Error(`not within ${SETTLE_DEADLINE_MS} ms: ${what}`);
    await sleep(LOOK_EVERY_MS);
  }
}
