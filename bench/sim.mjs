// How many hours does the simulator get through in a second? `--help` has the rest.
import { simSpeed } from './measures/sim-speed.mjs';
import { runBench } from './run-bench.mjs';

await runBench({
  file: 'sim.mjs',
  about: `Measures how many simulated hours one thread brings in a second by the clock on the wall, once it is warm. Each world is
another: what goes wrong in it, and so how much there is to do, follows from its seed. Takes about half a minute, quick
half of that. Build first, or use npm run bench:sim.`,
  measures: [simSpeed],
  full: { warmWorlds: 10, worlds: 20 },
  quick: { warmWorlds: 6, worlds: 6 },
  start: async (plan, progress) => ({
    bench: { plan, progress },
    facts: 'one thread',
    reset: async () => {},
    stop: async () => {},
  }),
});
