/** What a process of `scale.mjs` is told to do. Each task is given `{ holdfast, url, leases }` and facts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../dist/core/clock.js';
import { Emitter } from '../dist/core/events.js';
import { systemRandom } from '../dist/core/random.js';
import { openStore } from '../dist/store/open-store.js';
import { each } from './contenders/keeping.mjs';
import { median, monotonicMs } from './statistics.mjs';

const LANES = 1_000;
const CALL = { timeoutMs: 60_000 };
/** So many of one kind are asked for in one call. */
const CHUNK = 1_000;
const TTL_MS = 30_000;
/** Emitted or accepted, where one more is measured. */
const SAMPLES = 300;
const UNANSWERED = new Set(['OUTCOME_UNKNOWN', 'STORE_UNREACHABLE']);
const SERVICE = 'x'.repeat(32);

export const scaleTasks = {
  async open() {},
  hold,
  keeping,
  pairs,
  offerTargets,
  look,
  beat,
  workflows,
  oneWorkflow,
  sessions,
  oneSession,
};

async function hold(state, { from, count }) {
  const { holdfast, leases } = state;
  state.bytesBefore = usedBytes();
  await each(count, LANES, async (at) => {
    leases.push(await acquired(holdfast, `device:${from + at}`));
  });
}

/** A busy machine may leave a request without an answer: then it is asked again, until that grant is over. */
async function acquired(holdfast, key, tries = 10) {
  try {
    const result = await holdfast.acquire(key, { ttl: TTL_MS, wait: 2 * TTL_MS });
    if (result.ok) return result.lease;
    throw new Error(`${key} is held by ${result.holder}`);
  } catch (error) {
    if (!UNANSWERED.has(error.code) || tries === 0) throw error;
    return acquired(holdfast, key, tries - 1);
  }
}

/** For a while: the share of a core that holding takes, and how many are held at the end. */
async function keeping({ leases, bytesBefore }, { forMs }) {
  const before = process.cpuUsage();
  await sleep(forMs);
  const { user, system } = process.cpuUsage(before);
  const held = leases.filter((lease) => lease.isHeld()).length;
  return { share: (user + system) / 1_000 / forMs, bytes: usedBytes() - bytesBefore, held };
}

function usedBytes() {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function pairs({ holdfast }, { callers, count }) {
  await each(count, callers, async (at) => {
    const result = await holdfast.acquire(`pair:${at}`);
    if (!result.ok) throw new Error(`pair:${at} is held by ${result.holder}`);
    await result.lease.release();
  });
}

/** Leases of targets, as the instances of a fleet hold them. */
async function offerTargets(state, { from, count }) {
  const { leases } = await storeOf(state);
  await chunks(from, count, (ids) => {
    const requests = ids.map((id) => ({
      key: `poll:lease:target-${id}`,
      holder: `member-${id % 100}`,
    }));
    return leases.acquire(requests, { ...CALL, ttlMs: 600_000, inbox: 'bench' });
  });
}

/** Reads who owns each target, as an instance does in every round. Milliseconds. */
async function look(state, { count }) {
  const { leases } = await storeOf(state);
  const startMs = monotonicMs();
  await chunks(0, count, (ids) =>
    leases.read(
      ids.map((id) => `poll:lease:target-${id}`),
      CALL,
    ),
  );
  return monotonicMs() - startMs;
}

/** The heartbeat of every member, and the list of all, as often as told. */
async function beat(state, { count, lists }) {
  const { members } = await storeOf(state);
  const attributes = { weight: 1, owned: 100, version: '0.0.0', vitals: { renewMs: 1, loopMs: 1 } };
  await each(count, 100, (n) =>
    members.beat({ id: `member-${n}`, attributes }, { ...CALL, ttlMs: TTL_MS }),
  );
  for (let n = 0; n < lists; n++) {
    const { length } = await members.list(CALL);
    if (length !== count) throw new Error(`${length} of ${count} members are there`);
  }
}

/** Workflows that are open and wait for their next claim. */
async function workflows({ holdfast }, { from, count }) {
  await each(count, 64, async (at) => {
    const workflow = await holdfast.workflows.claim(`order-${from + at}`);
    await workflow.emit('STEP', { step: 1 }, { target: 'steps' });
    await workflow.release();
  });
}

/** Claims, emits and releases one more: the median. */
async function oneWorkflow({ holdfast }, { from }) {
  return sampled(async (n) => {
    const workflow = await holdfast.workflows.claim(`order-${from + n}`);
    await workflow.emit('STEP', { step: 1 }, { target: 'steps' });
    await workflow.release();
  });
}

async function sessions(state, { from, count }) {
  await each(count, 256, (at) => submit(state, from + at));
}

/** Accepts one more start: the median. */
async function oneSession(state, { from }) {
  return sampled((n) => submit(state, from + n));
}

function submit(state, n) {
  state.intents ??= state.holdfast.intents({ secret: SERVICE });
  const start = { type: 'stream.start', serviceRef: `1:0:19:${n}` };
  return state.intents.submit(start, { tenant: null, client: 'web' });
}

async function sampled(work) {
  const tookMs = [];
  for (let n = 0; n < SAMPLES; n++) {
    const startMs = monotonicMs();
    await work(n);
    tookMs.push(monotonicMs() - startMs);
  }
  return median(tookMs);
}

async function chunks(from, count, work) {
  for (let at = 0; at < count; at += CHUNK)
    await work(Array.from({ length: Math.min(CHUNK, count - at) }, (_, n) => from + at + n));
}

/** The store beneath, for what has no door of its own. */
async function storeOf(state) {
  const events = new Emitter();
  events.on('store.warned', () => {});
  const parts = { clock: systemClock, random: systemRandom, events, quarantine: 'off' };
  state.store ??= (await openStore(state.url, parts)).store;
  return state.store;
}
