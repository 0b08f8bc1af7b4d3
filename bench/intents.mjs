// How fast are intents accepted, and events told? `--help` has the rest.
import { intentAccept } from './measures/intent-accept.mjs';
import { intentEvents } from './measures/intent-events.mjs';
import { onRedisServers } from './process-bench.mjs';
import { runBench } from './run-bench.mjs';

const full = { rounds: 5, loadMs: 4_000, eventsMs: 20_000 };
const quick = { rounds: 3, loadMs: 1_500, eventsMs: 6_000 };

await runBench({
  file: 'intents.mjs',
  about: `Measures one process of the HTTP interface over real sockets, on a Redis server of its own: how many intents it accepts a
second next to a route written by hand that does one EVALSHA, how many it finds again, and how soon 1,000 clients of
/api/v3/events hear of 200 events a second that another process adds to the log. Loader and clients are processes of their
own. redis-server has to be on the PATH. Takes about two and a half minutes, quick about one. Build first, or use npm run
bench:intents.`,
  measures: [intentAccept, intentEvents],
  full,
  quick,
  deadlineMs: 600_000,
  start: onRedisServers('./intent-process.mjs'),
});
