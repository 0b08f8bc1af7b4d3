// One instance of a fleet in an upgrade, of the build that it is told: it holds leases, polls, and runs workflows and sessions.
// What it believes goes to a file at once, because it may be killed at any moment.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Beliefs } from './soak-beliefs.mjs';

const settings = JSON.parse(process.argv[2]);
const { name, entry, store, keys, targets, file, ttlMs } = settings;
const { open } = await import(pathToFileURL(entry).href);

const TARGET_EVERY_MS = 150;
const STARTS_EVERY_MS = 1_000;
const FLUSH_EVERY_MS = 25;
const TRIES = 10;
const BY = { tenant: null, client: 'upgrade' };

const beliefs = new Beliefs(`${file}.beliefs`, name);
const done = (what, id) => appendFileSync(`${file}.done`, `${JSON.stringify({ what, id })}\n`);
const accepted = (what, id) =>
  appendFileSync(`${file}.accepted`, `${JSON.stringify({ what, id })}\n`);
const ending = new AbortController();
const pause = (ms) => sleep(ms, null, { signal: ending.signal }).catch(() => {});

/** What the judge takes for a lease, one for each tenure. */
const tenures = new Map();
function tenureOf(key, fence) {
  const id = `${key} ${fence}`;
  if (!tenures.has(id)) tenures.set(id, { holder: name, fence });
  return tenures.get(id);
}

/** Says that it works on something, at its beginning and for as long as it does. */
async function believe(key, fence, assertHeld, forMs) {
  const tenure = tenureOf(key, fence);
  const untilMs = performance.now() + forMs;
  do {
    beliefs.check(tenure, key, assertHeld);
    await sleep(3);
  } while (performance.now() < untilMs);
  beliefs.check(tenure, key, assertHeld);
  beliefs.end(tenure);
}

const holdfast = await open(store, {
  name,
  maxTtl: ttlMs,
  kinds: {
    job: {
      tries: TRIES,
      run: async ({ n }, { signal, fence, session }) => {
        await believe(`session:${session.id}`, fence, () => signal.throwIfAborted(), 60);
        done('session', session.id);
        return { n };
      },
    },
  },
  on: { 'store.warned': () => {} },
});

const order = holdfast.workflow(
  'order',
  async (run, { n }) => {
    const first = await run.step('first', () => n + 1);
    await run.sleep('pause', 20);
    const second = await run.step('second', () => first * 2);
    done('workflow', run.id);
    return { n, second };
  },
  { ttl: ttlMs },
);

const intents = holdfast.intents();
intents.start();
const poller = holdfast.poller({
  targets: targets.map((id) => ({ id })),
  every: TARGET_EVERY_MS,
  ttl: ttlMs,
  poll: async ({ id }, { fence, assertHeld }) => {
    await believe(`target:${id}`, fence, assertHeld, 30);
    done('poll', id);
  },
});
await Promise.all([
  poller.start(),
  order.run(),
  holdfast.worker({ ttl: ttlMs, grace: 500 }).start(),
]);
const flushing = setInterval(() => beliefs.flush(), FLUSH_EVERY_MS);
process.once('SIGTERM', () => ending.abort());
process.send({ kind: 'ready' });

await Promise.all([...keys.map(hold), startWork()]);
// For the judge: the leases of targets and sessions end in here.
await holdfast.close({ within: '8s' });
clearInterval(flushing);
beliefs.flush();
process.exit(0);

/** Holds a key again and again. The others compete for it. */
async function hold(key) {
  while (!ending.signal.aborted) {
    const result = await holdfast.acquire(key, { ttl: ttlMs, wait: 500 }).catch(() => null);
    if (!result?.ok) {
      await pause(20);
      continue;
    }
    const { lease } = result;
    await believe(`lease:${key}`, lease.fence, () => lease.assertHeld(), 80);
    done('lease', key);
    await lease.release();
    await pause(10);
  }
}

/** Starts workflows and sessions; what was accepted has to be done in the end, by whichever build. */
async function startWork() {
  for (let n = 0; !ending.signal.aborted; n++) {
    const id = `${name}-${n}`;
    try {
      await order.start(id, { n });
      accepted('workflow', id);
      const job = { type: 'start', kind: 'job', key: id, params: { n } };
      const { session } = await intents.submit(job, BY);
      accepted('session', session.id);
    } catch (error) {
      appendFileSync(`${file}.refused`, `${error.code ?? error}\n`);
    }
    await pause(STARTS_EVERY_MS);
  }
}
