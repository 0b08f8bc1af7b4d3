import { runWorlds } from '../../sim/pool.mjs';
import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { monotonicMs } from '../statistics.mjs';

const HOUR_MS = 3_600_000;
const USUAL = { instances: 3, targets: 5, ttlMs: 30_000 };
/** The seeds of the worlds that are measured, and of those before them. */
const FIRST_SEED = 1;
const FIRST_WARM_SEED = 1_000;

/** Hours of simulated time in a second, in worlds of the usual size and in those that `npm run sim` makes by itself. */
export const simSpeed = { name: 'sim-speed', run };

async function run(bench) {
  const { warmWorlds, worlds } = bench.plan;
  const warm = { what: 'warming up', count: warmWorlds, firstSeed: FIRST_WARM_SEED, shape: USUAL };
  const measured = { count: worlds, firstSeed: FIRST_SEED };
  const usual = { what: '3 instances × 5 targets', ...measured, shape: USUAL };
  const mixed = { what: 'mixed worlds', ...measured, shape: {} };
  const speeds = await speedsOf(bench, [warm, usual, mixed]);
  const row = (group) => ({
    requirement: '–',
    measure: `simulated hours per second, ${group.what}, one core`,
    unit: 'h/s',
    figures: { [OURS.name]: speeds.get(group) },
  });
  return [absolute({ ...row(usual), atLeast: 5 }), fact(row(mixed))];
}

/** One group after the other on the same thread, which gets faster with the first. */
async function speedsOf(bench, groups) {
  const spent = new Map(groups.map((group) => [group, { simulatedMs: 0, tookMs: 0 }]));
  const worlds = groups.flatMap((group) =>
    Array.from({ length: group.count }, (_, n) => ({ group, seed: group.firstSeed + n })),
  );
  let current = null;
  let startMs = 0;
  await runWorlds({
    jobs: 1,
    shrinks: false,
    next: () => {
      current = worlds.shift() ?? null;
      if (current === null) return null;
      const { group, seed } = current;
      bench.progress(simSpeed.name, `${group.what}, ${worlds.length} worlds to go`);
      startMs = monotonicMs();
      return { seed, hours: 1, ...group.shape };
    },
    onReport: ({ crash, simulatedMs }) => {
      if (crash !== undefined) throw new Error(crash);
      const sum = spent.get(current.group);
      sum.tookMs += monotonicMs() - startMs;
      sum.simulatedMs += simulatedMs;
    },
  });
  return new Map(
    [...spent].map(([group, { simulatedMs, tookMs }]) => [
      group,
      simulatedMs / HOUR_MS / (tookMs / 1_000),
    ]),
  );
}
