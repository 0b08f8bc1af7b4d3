import { setTimeout as sleep } from 'node:timers/promises';
import { OURS, PEERS, retryMs } from '../contenders.mjs';
import { absolute } from '../report.mjs';
import { quantile } from '../statistics.mjs';

/** The waiter has asked once, and knows that it has to wait. */
const SETTLE_MS = 10;

/** From the call of release() in one process until a waiter in another one holds the key. */
export const handover = { name: 'release → held elsewhere', run };

async function run(bench) {
  const { handovers, peerHandovers } = bench.plan;
  bench.progress(`${handover.name}: ${OURS.name}`);
  const tookMs = { [OURS.name]: await handOver(bench, OURS, handovers) };
  bench.progress(`${handover.name}: the peers`);
  // At once: what they do most of the time is sleep.
  await Promise.all(
    PEERS.filter(({ name }) => !bench.absent.has(name)).map(async (peer) => {
      tookMs[peer.name] = await handOver(bench, peer, peerHandovers);
    }),
  );
  const at = (share) =>
    Object.fromEntries(Object.entries(tookMs).map(([name, all]) => [name, quantile(all, share)]));
  const common = { requirement: 'K-10', unit: 'ms' };
  return [
    absolute({ ...common, measure: `${handover.name}, p50`, figures: at(0.5), atMost: 1.5 }),
    absolute({ ...common, measure: `${handover.name}, p95`, figures: at(0.95), atMost: 3 }),
  ];
}

/** Two processes hand one key to and fro; each handover begins at a random moment between two tries of the waiter. */
async function handOver(bench, contender, count) {
  const pair = [bench.start(contender), bench.start(contender)];
  const key = 'handed-over';
  const tookMs = [];
  try {
    await Promise.all(pair.map((one) => one.ask('open')));
    await pair[0].ask('wait', { key });
    for (let i = 0; i < count; i++) {
      const [holder, waiter] = i % 2 === 0 ? pair : pair.toReversed();
      const waiting = waiter.ask('wait', { key });
      waiting.catch(() => {});
      await sleep(SETTLE_MS + Math.random() * retryMs(contender));
      const askedAtMs = await holder.ask('release', { key });
      tookMs.push((await waiting) - askedAtMs);
    }
    return tookMs;
  } finally {
    await Promise.all(pair.map((one) => one.stop()));
  }
}
