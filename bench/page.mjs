// How fast is the page? `--help` has the rest.
import { pageBundle } from './measures/page-bundle.mjs';
import { pageCrowd } from './measures/page-crowd.mjs';
import { pageEvents } from './measures/page-events.mjs';
import { ProcessBench } from './process-bench.mjs';
import { runBench } from './run-bench.mjs';

const full = { events: 200, movesMs: 20_000, rounds: 5 };
const quick = { events: 60, movesMs: 6_000, rounds: 3 };

await runBench({
  file: 'page.mjs',
  about: `Measures the page in a real browser, on an embedded store, with a server of its own process: how soon an event that is in the
store is seen, how long it takes until a fleet of 10,000 targets and 50 members is drawn, the longest task of the browser's main thread
while 200 targets a second change hands, and how much is downloaded. chromium has to be on the PATH. Takes about a minute and a half.
Build first, or use npm run bench:page.`,
  measures: [pageBundle, pageEvents, pageCrowd],
  full,
  quick,
  deadlineMs: 300_000,
  start: async (plan, progress) => {
    const bench = new ProcessBench({ plan, progress, file: './page-process.mjs' });
    const reset = () => bench.reset();
    return { bench, facts: 'SQLite, Chromium', reset, stop: reset };
  },
});
