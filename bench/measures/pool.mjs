import { setTimeout as sleep } from 'node:timers/promises';
import { Bench } from '../bench.mjs';
import { OURS, PEERS, retryMs } from '../contenders.mjs';
import { beside } from '../report.mjs';
import { median, quantile } from '../statistics.mjs';

const SLOTS = 16;
/** Who has asked once knows that it has to wait. */
const SETTLE_MS = 10;
/** The one among the peers that has a counting semaphore. */
const RIVAL = PEERS.find(({ name }) => name === 'redis-semaphore');
const WHO = [OURS, RIVAL];
const ROW = { requirement: 'K-10', rival: RIVAL.name };

/** Pools beside the counting semaphore of redis-semaphore, whose slots have no fence and no deadline of their own. */
export const pool = { name: `pool of ${SLOTS} slots`, run };

async function run(bench) {
  return bench.onRedis(async (redis) => {
    const own = new Bench({ redis, plan: bench.plan, progress: bench.progress });
    try {
      return [...(await pairs(own)), ...(await handovers(own))];
    } finally {
      await own.stop();
    }
  });
}

/** Callers of one process that acquire and release: as many as there are slots at most, so that nobody has to wait. */
async function pairs(bench) {
  const members = await bench.crew(WHO);
  const rows = [];
  for (const callers of [1, SLOTS]) {
    const measure = `${pool.name}: acquire + release, ${callers === 1 ? 'one caller' : `${callers} callers`}`;
    const facts = { pool: `pairs-${callers}`, slots: SLOTS, callers, count: bench.plan.slotPairs };
    const results = await bench.race(measure, members, (member) => member.ask('slotPairs', facts));
    const figures = Object.fromEntries(
      [...results].map(([{ name }, rounds]) => [name, median(rounds)]),
    );
    rows.push(beside({ ...ROW, measure, unit: 'pairs/s', figures }));
  }
  return rows;
}

/** From release() in one process until the waiter in another process has a slot. */
async function handovers(bench) {
  const tookMs = {};
  for (const contender of WHO) {
    bench.progress(`${pool.name}: freed → had elsewhere`, contender.name);
    tookMs[contender.name] = await handOver(bench, contender);
  }
  return [
    [0.5, 'p50'],
    [0.95, 'p95'],
  ].map(([share, called]) => {
    const ofEach = Object.entries(tookMs).map(([name, all]) => [name, quantile(all, share)]);
    const measure = `${pool.name}: freed → had by a waiter in another process, ${called}`;
    return beside({ ...ROW, measure, unit: 'ms', figures: Object.fromEntries(ofEach) });
  });
}

async function handOver(bench, contender) {
  const facts = { pool: 'handed-over', slots: SLOTS };
  const both = await Promise.all([bench.open(contender), bench.open(contender)]);
  try {
    for (let n = 0; n < SLOTS; n++) await both[0].ask('takeSlot', facts);
    const tookMs = [];
    for (let n = 0; n < bench.plan.slotHandovers; n++) {
      const [holder, waiter] = n % 2 === 0 ? both : both.toReversed();
      const waiting = waiter.ask('takeSlot', facts);
      // Its failure is met below; until then it must not count as unhandled.
      waiting.catch(() => {});
      await sleep(SETTLE_MS + Math.random() * retryMs(contender));
      const askedAtMs = await holder.ask('freeSlot', facts);
      tookMs.push((await waiting) - askedAtMs);
    }
    return tookMs;
  } finally {
    await Promise.all(both.map((one) => one.stop()));
  }
}
