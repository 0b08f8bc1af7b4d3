/** What an instance of a fleet can be asked to do in its process. Each task is given `{ holdfast, notes, … }` and facts. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from './statistics.mjs';

const LOOK_EVERY_MS = 10;
/** Of the timer that watches the event loop; the delays it tells of include it. */
const LOOP_RESOLUTION_MS = 10;
const MB = 1e6;

export const tasks = {
  /** Nothing: resolves when the store is open. */
  async open() {},
  start,
  startTasks,
  untilRunning,
  stop,
  owned,
  untilOwned,
  happened,
  nextRenewal,
  add,
  pause,
  watchLoop,
  burden,
  heap,
};

/** When what happened here, per target, on the clock that all processes share. */
export class Notes {
  /** The first time since it was last asked for. */
  acquired = new Map();
  polled = new Map();
  released = new Map();
  /** The last time. */
  settled = new Map();

  first(what, id) {
    if (!this[what].has(id)) this[what].set(id, monotonicMs());
  }

  take() {
    const kinds = ['acquired', 'polled', 'released', 'settled'];
    const taken = Object.fromEntries(kinds.map((kind) => [kind, [...this[kind]]]));
    for (const kind of kinds) this[kind].clear();
    return taken;
  }
}

/** One of many ids that hardly differ. */
export function deviceId(i) {
  return `device-${String(i).padStart(6, '0')}`;
}

/**
 * Takes part: polls `count` targets, or the sessions in the store where there is none. A poll takes from `pollMs[0]` to
 * `pollMs[1]`, or nothing. Notes cost memory, so they are kept where asked for.
 */
async function start(state, { count, pollMs, isNoting = true, options }) {
  const { holdfast, notes } = state;
  const target = (_, i) => ({ id: deviceId(i) });
  const work = async ({ id }) => {
    if (isNoting) notes.first('polled', id);
    if (pollMs !== undefined) await sleep(pollMs[0] + Math.random() * (pollMs[1] - pollMs[0]));
    if (isNoting) notes.settled.set(id, monotonicMs());
  };
  if (isNoting) {
    holdfast.on('lease.acquired', ({ key }) => notes.first('acquired', key));
    holdfast.on('lease.released', ({ key }) => notes.first('released', key));
  }
  state.poller = holdfast.poller({
    ...(count !== undefined && { targets: Array.from({ length: count }, target) }),
    ...options,
    poll: pollMs === undefined && !isNoting ? () => {} : work,
  });
  await state.poller.start();
  return holdfast.instanceId;
}

/** Takes part: runs a task for each of `count` targets, which waits until it is told to stop. */
async function startTasks(state, { count, options }) {
  const { holdfast } = state;
  const run = (_, { signal }) =>
    new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  const targets = Array.from({ length: count }, (_, i) => ({ id: deviceId(i) }));
  state.poller = holdfast.runner({ targets, ...options, run });
  await state.poller.start();
  return holdfast.instanceId;
}

/** When it ran that many. */
async function untilRunning({ poller }, { count }) {
  while (poller.inFlight < count) await sleep(LOOK_EVERY_MS);
  return monotonicMs();
}

/** Hands everything over: when that was asked for, and what happened here until then. */
async function stop({ poller, notes }) {
  const askedAtMs = monotonicMs();
  await poller.stop({ within: '10s' });
  return { askedAtMs, ...notes.take() };
}

async function owned({ poller }) {
  return poller.manager.ownedSessions();
}

/** When it owned that many. */
async function untilOwned({ holdfast }, { count }) {
  while (holdfast.held < count) await sleep(LOOK_EVERY_MS);
  return monotonicMs();
}

/** What happened here since this was last asked. */
async function happened({ notes }) {
  return notes.take();
}

/** When it has next renewed what it owns. */
function nextRenewal({ holdfast }) {
  return new Promise((resolve) => {
    const unsubscribe = holdfast.on('lease.renewed', () => {
      unsubscribe();
      resolve(monotonicMs());
    });
  });
}

/** When it was asked for; likewise below. */
async function add({ holdfast }, { ids }) {
  const askedAtMs = monotonicMs();
  for (const result of await holdfast.sessions.addAll(ids.map((id) => ({ id }))))
    if (!result.ok) throw result.error;
  return askedAtMs;
}

async function pause({ holdfast }, { id }) {
  const askedAtMs = monotonicMs();
  await holdfast.sessions.pause(id);
  return askedAtMs;
}

/** From now on. */
async function watchLoop(state) {
  state.loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  state.loop.enable();
}

/** How late the event loop was since it is watched, what the process takes of memory, and what it took of the processor. */
/** What is in use, in megabytes: without what can be collected. */
async function heap() {
  globalThis.gc();
  return process.memoryUsage().heapUsed / MB;
}

async function burden({ loop, holdfast }) {
  const cpu = process.cpuUsage();
  return {
    held: holdfast.held,
    p99Ms: loop.percentile(99) / 1e6,
    maxMs: loop.max / 1e6,
    megabytes: process.memoryUsage.rss() / MB,
    peakMegabytes: (process.resourceUsage().maxRSS * 1_024) / MB,
    cpuMs: (cpu.user + cpu.system) / 1_000,
  };
}
