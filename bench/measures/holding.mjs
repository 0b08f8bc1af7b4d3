import { OURS } from '../contenders.mjs';
import { absolute } from '../report.mjs';
import { median } from '../statistics.mjs';

const HELD = 100_000;
/** Acquired at a time while that many are taken. */
const LANES = 1_000;
const CALLS = 1_000_000;
const BATCHES = 5;

/** What a check before every step costs. */
export const checks = { name: 'isHeld()', run: measureChecks };

async function measureChecks(bench) {
  bench.progress(checks.name, 'a million calls');
  const [ours] = await bench.crew([OURS]);
  const ns = [];
  // The first only warms up.
  for (let i = 0; i <= BATCHES; i++) ns.push(await ours.ask('isHeld', { calls: CALLS }));
  const figures = { [OURS.name]: median(ns.slice(1)) };
  const row = { requirement: 'K-04', measure: checks.name, unit: 'ns', figures };
  return [absolute({ ...row, atMost: 200 })];
}

/** What a lease that is only held costs in memory. */
export const heap = { name: 'heap per lease, 100,000 held', run: measureHeap };

async function measureHeap(bench) {
  bench.progress(heap.name, 'taking them');
  const ours = await bench.open(OURS);
  try {
    const figures = { [OURS.name]: await ours.ask('heap', { count: HELD, lanes: LANES }) };
    const row = { requirement: 'K-03', measure: heap.name, unit: 'bytes', figures };
    return [absolute({ ...row, atMost: 700 })];
  } finally {
    await ours.stop();
  }
}
