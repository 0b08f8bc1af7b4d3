import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';

const CLIENTS = 1_000;
const PER_SECOND = 200;
/** What is on its way when the last event is added has this long. */
const GRACE_MS = 15_000;
const WARM_UP_MS = 2_000;

/** Many who watch one process, while another adds to the log. */
export const intentEvents = { name: '1,000 SSE clients, 200 events/s', run };

async function run(bench) {
  const { eventsMs } = bench.plan;
  return bench.onRedis(async ({ url }) => {
    bench.progress(intentEvents.name, 'connecting');
    const [serving, listening, appending] = await Promise.all(
      Array.from({ length: 3 }, () => bench.instance(url)),
    );
    const port = await serving.ask('serveOurs');
    await listening.ask('listen', { port, count: CLIENTS });
    const before = await serving.ask('memory');
    bench.progress(intentEvents.name, 'listening');
    const facts = { perSecond: PER_SECOND, forMs: WARM_UP_MS + eventsMs };
    const withinMs = facts.forMs + GRACE_MS;
    const events = await appending.ask('append', facts, { withinMs });
    const awaited = { clients: CLIENTS, events, withinMs: GRACE_MS };
    const heard = await listening.ask('untilHeard', awaited, { withinMs: 2 * GRACE_MS });
    const after = await serving.ask('memory');
    return rowsOf({ events, heard, before, after });
  });
}

function rowsOf({ events, heard, before, after }) {
  const row = (measure, unit, value) => ({
    requirement: 'I-10',
    measure: `${intentEvents.name}${measure}`,
    unit,
    figures: { [OURS.name]: value },
  });
  const whole = row(': clients with every event once and in order', 'clients', heard.complete);
  const notes = [
    `${heard.arrivals} of ${events * CLIENTS} arrivals; ${heard.wrong} clients out of order`,
    ...heard.failures,
  ];
  const growth = after.peakMegabytes - before.megabytes;
  return [
    absolute({ ...whole, atLeast: CLIENTS, notes }),
    fact(row(', append → arrival, p50', 'ms', heard.p50Ms)),
    absolute({ ...row(', append → arrival, p95', 'ms', heard.p95Ms), atMost: 500 }),
    fact(row(', append → arrival, p99', 'ms', heard.p99Ms)),
    absolute({ ...row(': growth of the server at its peak', 'MB', growth), atMost: 100 }),
    fact(row(': growth of the server afterwards', 'MB', after.megabytes - before.megabytes)),
  ];
}
