import { setTimeout as sleep } from 'node:timers/promises';
import { OURS, PEERS, retryMs } from '../contenders.mjs';
import { absolute } from '../report.mjs';
import { quantile } from '../statistics.mjs';

/** The waiter has asked once, and knows that it has to wait. */
const SETTLE_MS = 10;
const KEY = 'handed-over';

/** From the call of release() in one process until a waiter in another one holds the key. */
export const handover = { name: 'release → held elsewhere', run };

async function run(bench) {
  const tookMs = {};
  const measured = async (contender, count) => {
    const all = await handOver(bench, contender, count);
    if (all !== null) tookMs[contender.name] = all;
  };
  bench.progress(handover.name, OURS.name);
  await measured(OURS, bench.plan.handovers);
  bench.progress(handover.name, 'the peers');
  // At once: what they do most of the time is sleep.
  await Promise.all(PEERS.map((peer) => measured(peer, bench.plan.peerHandovers)));
  const at = (share) =>
    Object.fromEntries(Object.entries(tookMs).map(([name, all]) => [name, quantile(all, share)]));
  const row = { requirement: 'K-10', unit: 'ms' };
  return [
    absolute({ ...row, measure: `${handover.name}, p50`, figures: at(0.5), atMost: 1.5 }),
    absolute({ ...row, measure: `${handover.name}, p95`, figures: at(0.95), atMost: 3 }),
  ];
}

/** Two processes hand one key to and fro; each handover begins at a random moment between two tries of the waiter. */
export async function handOver(bench, contender, count) {
  const both = await Promise.all([bench.open(contender), bench.open(contender)]);
  if (both.includes(null)) return null;
  const tookMs = [];
  try {
    await both[0].ask('wait', { key: KEY });
    for (let i = 0; i < count; i++) {
      const [holder, waiter] = i % 2 === 0 ? both : both.toReversed();
      const waiting = waiter.ask('wait', { key: KEY });
      // Its failure is met below; until then it must not count as unhandled.
      waiting.catch(() => {});
      await sleep(SETTLE_MS + Math.random() * retryMs(contender));
      const askedAtMs = await holder.ask('release', { key: KEY });
      tookMs.push((await waiting) - askedAtMs);
    }
    return tookMs;
  } finally {
    await Promise.all(both.map((one) => one.stop()));
  }
}
