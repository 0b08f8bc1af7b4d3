import { describe, expect, it } from 'vitest';
import type { Holdfast, Poller } from '../../src/index.ts';
import { startCluster } from '../support/redis-cluster.ts';
import { startSentinels } from '../support/redis-sentinel.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';
import { hostMs } from './support/lease-watch.ts';

leaveNothingBehind();

interface Polled {
  readonly by: string;
  readonly startMs: number;
  endMs: number;
}

/** Instances in this process that poll the sessions there are, and what they have polled. */
class Instances {
  readonly all: { holdfast: Holdfast; poller: Poller }[] = [];
  readonly polls = new Map<string, Polled[]>();
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async start(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const holdfast = await openAt({ url: this.#url });
      const poller = holdfast.poller({
        ...{ ttl: '6s', renewEvery: '1s', operationTimeout: '1s', every: 200 },
        poll: async ({ id }) => {
          const polled = { by: holdfast.instanceId, startMs: hostMs(), endMs: Infinity };
          this.polls.set(id, [...(this.polls.get(id) ?? []), polled]);
          await new Promise((resolve) => setTimeout(resolve, 20));
          polled.endMs = hostMs();
        },
      });
      await poller.start();
      this.all.push({ holdfast, poller });
    }
  }

  untilEven(ids: readonly string[], deadlineMs = 15_000): Promise<unknown> {
    const isEven = () => {
      const owned = this.all.map(({ poller }) => poller.manager.ownedSessions());
      const share = Math.floor(ids.length / this.all.length);
      const areEven = owned.every(({ length }) => length === share || length === share + 1);
      return areEven && owned.flat().sort().join() === [...ids].sort().join();
    };
    return until(isEven, { what: 'everything to be owned evenly', deadlineMs });
  }

  /** Every target has been polled again since. */
  untilPolled(ids: readonly string[], deadlineMs: number): Promise<unknown> {
    const sinceMs = hostMs();
    const isPolled = (id: string) => (this.polls.get(id)?.at(-1)?.startMs ?? 0) > sinceMs;
    return until(() => ids.every(isPolled), { what: 'a poll of every target', deadlineMs });
  }

  get overlaps(): number {
    let count = 0;
    for (const polls of this.polls.values())
      for (const [i, { by, startMs }] of polls.entries()) {
        const before = polls[i - 1];
        if (before !== undefined && before.by !== by && startMs < before.endMs) count++;
      }
    return count;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all.map(({ holdfast }) => holdfast.close({ within: 500 })));
  }
}

const IDS = Array.from({ length: 30 }, (_, i) => `device-${String(i).padStart(6, '0')}`);

async function story(url: string, failOver: () => Promise<void>): Promise<void> {
  await using instances = new Instances(url);
  await instances.start(2);
  const [first] = instances.all;
  await first?.holdfast.targets.addAll(IDS.map((id) => ({ id })));
  await instances.untilEven(IDS);
  await instances.start(1);
  await instances.untilEven(IDS);
  await failOver();
  await instances.untilPolled(IDS, 30_000);
  const [gone] = instances.all.splice(0, 1);
  await gone?.holdfast.close({ within: 2_000 });
  await instances.untilEven(IDS, 20_000);
  expect(instances.overlaps).toBe(0);
}

describe.concurrent('a fleet', () => {
  it('SC-001 SC-005 US1.2 US1.3 shares its targets on a Redis Cluster, also when that loses a primary', async () => {
    await using cluster = await startCluster();
    await story(cluster.url, async () => {
      await cluster.untilFailedOver(await cluster.killPrimary(0));
    });
  }, 90_000);

  it('SC-001 SC-005 US1.2 US1.3 shares its targets behind sentinels, also when these name another primary', async () => {
    await using watched = await startSentinels();
    await story(watched.url(), async () => {
      const old = await watched.primary();
      const [replica] = await watched.replicas();
      const isThere = async () => (await replica?.cli('ZCARD', 'index:session')) === IDS.length;
      await until(isThere, { what: 'the replica to be in step', deadlineMs: 15_000 });
      await old.kill();
      const isOver = async () => (await watched.primary()).port !== old.port;
      await until(isOver, { what: 'another primary', deadlineMs: 30_000 });
    });
  }, 90_000);
});
