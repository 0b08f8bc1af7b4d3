// How long does an import take? `--help` has the rest.
import { importModules } from './measures/import-modules.mjs';
import { importTime } from './measures/import-time.mjs';
import { runBench } from './run-bench.mjs';

await runBench({
  file: 'import.mjs',
  about: `Measures what a program pays before its first line: how long the import of the package takes, alone and with what a lease on Redis
needs, beside its peers with the client they need; how long each other part takes; and how many modules each loads. Every import has a
process of its own; files are in the system's cache. Takes about a minute. Build first, or use npm run bench:import.`,
  measures: [importTime, importModules],
  full: { rounds: 15 },
  quick: { rounds: 5 },
  start: async (plan, progress) => ({
    bench: { plan, progress },
    facts: 'a process for each import',
    reset: async () => {},
    stop: async () => {},
  }),
});
