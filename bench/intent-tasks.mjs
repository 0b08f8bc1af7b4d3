/** What a process of the bench of intents can be asked to do. Each task is given `{ url, … }` and facts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { open } from '../dist/index.js';
import { createApp, serve } from '../dist/server/index.js';
import { openRedisStore } from '../dist/store/redis/redis-store.js';
import { serveBare } from './contenders/bare-route.mjs';
import { EventListeners } from './event-listeners.mjs';
import { load as loadFor } from './http-load.mjs';
import { monotonicMs } from './statistics.mjs';

const TOKEN = 'the-token-of-the-bench';
const LOG_TOPIC = 'log';
const CALL = { timeoutMs: 5_000 };
const LOOK_EVERY_MS = 20;
const MB = 1e6;

export const tasks = {
  /** Nothing: resolves when the process runs. */
  async open() {},
  serveOurs,
  serveBare: async ({ url }, { client }) => serveBare(url, client),
  load,
  append,
  listen,
  untilHeard,
  memory,
};

/** A kind with a schema, and with params of the size of a channel's reference. */
const transcode = {
  params: z.object({ file: z.string(), preset: z.enum(['hd', 'sd']) }),
  exclusive: ({ file }) => file,
};

/** The port of the interface on this store. */
async function serveOurs({ url }) {
  const holdfast = await open(url, { quarantine: 'off', name: 'bench', kinds: { transcode } });
  const tokens = [{ id: 'bench', token: TOKEN, scope: 'v3:admin' }];
  const app = createApp(holdfast, { tokens, events: { clientsPerToken: 5_000 } });
  const { port } = await serve(app, { host: '127.0.0.1', port: 0 });
  return port;
}

/** Starts channels that nobody has started before, or always the same one. */
async function load(state, { port, connections, forMs, isDistinct, isDeclared = false }) {
  const next = isDistinct ? () => ++state.channels : () => 0;
  return loadFor({ port, token: TOKEN, connections, forMs, next, isDeclared });
}

/** Adds events to the log at a steady pace, one at a time, as an instance does: how many. */
async function append({ url }, { perSecond, forMs }) {
  const store = await openRedisStore(url, { quarantine: 'off' });
  const count = Math.round((perSecond * forMs) / 1_000);
  const startMs = monotonicMs();
  const appending = [];
  for (let n = 0; n < count; n++) {
    const waitMs = startMs + (n * 1_000) / perSecond - monotonicMs();
    if (waitMs > 0) await sleep(waitMs);
    appending.push(appendOne(store, n));
  }
  await Promise.all(appending);
  await store.close();
  return count;
}

async function appendOne({ log, signals }, n) {
  const facts = { session: `session-${n % 50}`, tenant: 'default', state: 'RUNNING', reason: null };
  const event = { at: Date.now(), instance: 'bench-1', event: 'session.advanced', ...facts };
  await log.append([{ ...event, bench: `${n} ${monotonicMs()}` }], CALL);
  await signals.publish(LOG_TOPIC, '');
}

async function listen(state, { port, count }) {
  state.listeners = new EventListeners();
  await state.listeners.open({ port, token: TOKEN, count });
}

/** Waits until all have heard all, or not for too long: how many have, and how long it took. */
async function untilHeard({ listeners }, { clients, events, withinMs }) {
  const untilMs = monotonicMs() + withinMs;
  while (listeners.heard(events) < clients && monotonicMs() < untilMs) await sleep(LOOK_EVERY_MS);
  return { complete: listeners.heard(events), ...listeners.summary };
}

/** In megabytes; what can be collected, is. */
async function memory() {
  globalThis.gc();
  return {
    megabytes: process.memoryUsage.rss() / MB,
    peakMegabytes: (process.resourceUsage().maxRSS * 1_024) / MB,
  };
}
