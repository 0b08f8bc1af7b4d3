/** What a process of the bench of workflows can be asked to do. Each task is given `{ holdfast, orchestrators, … }` and facts. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { openBare } from './contenders/bare-stream.mjs';
import { median, monotonicMs } from './statistics.mjs';

/** As large as payloads are. */
const PAYLOAD = { order: 'order-000123', items: [{ sku: 'a-1', count: 2 }], total_cents: 4_200 };
/** Claims under way at once. */
const LANES = 64;

export const tasks = {
  /** Nothing: resolves when the store is open. */
  async open() {},
  claim,
  emit,
  add,
  emitSpaced,
  work,
  untilHandled,
  handledAt,
  stopWorking,
  untold,
  runSteps,
  untilRenewed,
  takeSteps,
  putToSleep,
  fillBare,
  workBare,
};

/** Becomes the writer of this many workflows, `of` and a number. */
async function claim({ holdfast, orchestrators }, { of, count, options }) {
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const id = `${of}-${next++}`;
      orchestrators.set(id, await holdfast.workflows.claim(id, options));
    }
  };
  await Promise.all(Array.from({ length: Math.min(LANES, count) }, lane));
}

/** One after the other in each of the workflows, all workflows at once: the median in microseconds. */
async function emit({ orchestrators }, { of, count, each, target }) {
  const lane = (_, i) => {
    const orchestrator = orchestrators.get(`${of}-${i}`);
    return timed(each, () => orchestrator.emit('STEP', PAYLOAD, { target }));
  };
  return median((await Promise.all(Array.from({ length: count }, lane))).flat());
}

/** In microseconds, one after the other. */
async function timed(count, run) {
  const tookUs = [];
  for (let n = 0; n < count; n++) {
    const startMs = monotonicMs();
    await run();
    tookUs.push((monotonicMs() - startMs) * 1_000);
  }
  return tookUs;
}

/** What no way to publish can do without, over the same client: the median in microseconds. */
async function add(state, { key, each }) {
  const { client } = state;
  const body = JSON.stringify(PAYLOAD);
  if (client !== null) return median(await timed(each, () => client.xAdd(key, '*', { body })));
  state.bare ??= await openBare(state.url);
  return median(await timed(each, () => state.bare.add(key, body)));
}

/** One now and then, to processors that have nothing else to do: when each was asked for. */
async function emitSpaced({ orchestrators }, { of, count, target, everyMs }) {
  const orchestrator = orchestrators.get(`${of}-0`);
  const askedAtMs = [];
  for (let n = 0; n < count; n++) {
    await sleep(everyMs * (0.5 + Math.random()));
    const startMs = monotonicMs();
    const { action_id } = await orchestrator.emit('STEP', PAYLOAD, { target });
    askedAtMs.push([action_id, startMs]);
  }
  return askedAtMs;
}

/** Begins to work: notes when each action was begun, and how often. */
async function work(state, { name, options }) {
  const { holdfast, handled } = state;
  handled.clear();
  const STEP = (_, { idempotencyKey }) => {
    const known = handled.get(idempotencyKey);
    if (known === undefined) handled.set(idempotencyKey, { atMs: monotonicMs(), times: 1 });
    else known.times++;
  };
  const startMs = monotonicMs();
  state.processor = holdfast.processor({ name, role: 'effect', handlers: { STEP }, ...options });
  await state.processor.start();
  return startMs;
}

/** When this many actions were done, and brought in; how many of them more than once. */
async function untilHandled({ processor, handled }, { count }) {
  while (handled.size < count || processor.running > 0) await turn();
  const doneAtMs = monotonicMs();
  const repeated = [...handled.values()].filter(({ times }) => times > 1).length;
  return { doneAtMs, handled: handled.size, repeated };
}

async function handledAt({ handled }) {
  return [...handled].map(([id, { atMs }]) => [id, atMs]);
}

async function stopWorking(state) {
  await state.processor?.stop();
  state.processor = null;
}

/** How many actions of these workflows have no result, and how many results there are. */
async function untold({ holdfast, orchestrators }, { of, count }) {
  const sums = { unresolved: 0, unread: 0 };
  for (let i = 0; i < count; i++) {
    const id = `${of}-${i}`;
    const view = await holdfast.workflows.get(id);
    sums.unresolved += view.unresolved;
    sums.unread += view.unread;
    await orchestrators.get(id).release();
    orchestrators.delete(id);
  }
  return sums;
}

/** Every workflow emits, waits for the result, and emits again: steps per second. */
async function runSteps({ orchestrators }, { of, count, target, forMs }) {
  const startMs = monotonicMs();
  let steps = 0;
  const lane = async (_, i) => {
    const orchestrator = orchestrators.get(`${of}-${i}`);
    while (monotonicMs() < startMs + forMs) {
      const { action_id } = await orchestrator.emit('STEP', PAYLOAD, { target });
      const { success } = await orchestrator.result(action_id);
      if (!success) throw new Error(`${action_id} failed`);
      steps++;
    }
  };
  await Promise.all(Array.from({ length: count }, lane));
  return (steps / (monotonicMs() - startMs)) * 1_000;
}

/** Resolves when as many renewals have been confirmed as there are workflows. */
function untilRenewed({ holdfast, orchestrators }) {
  let renewed = 0;
  return new Promise((resolve) => {
    const unsubscribe = holdfast.on('lease.renewed', ({ count }) => {
      renewed += count;
      if (renewed < orchestrators.size) return;
      unsubscribe();
      resolve(renewed);
    });
  });
}

/** Steps of one workflow in one way, one after the other: the median in microseconds. */
async function takeSteps({ orchestrators }, { of, way, each, from, target }) {
  const order = orchestrators.get(`${of}-0`);
  let n = from;
  const ways = {
    call: () => order.call('STEP', PAYLOAD, { as: `call-${n++}`, to: target }),
    emitAndResult: async () =>
      order.result((await order.emit('STEP', PAYLOAD, { target })).action_id),
    step: () => order.step(`step-${n++}`, () => PAYLOAD),
    emit: () => order.emit('STEP', PAYLOAD, { target: 'nobody' }),
  };
  return median(await timed(each, ways[way]));
}

/** Starts workflows that sleep for a day, and waits until all do: the bytes of heap of each. */
async function putToSleep({ holdfast }, { count }) {
  const nap = holdfast.workflow('nap', (order) => order.sleep('long', '1d'), { concurrency: 256 });
  let suspended = 0;
  holdfast.on('workflow.suspended', () => suspended++);
  const startSome = async (from, to) => {
    let next = from;
    const lane = async () => {
      while (next < to) await nap.start(`nap-${next++}`, null);
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    while (suspended < to || nap.running > 0) await sleep(20);
  };
  await nap.run();
  // Code is compiled, and buffers are grown, before the heap is measured.
  const warm = Math.min(2_000, count / 2);
  await startSome(0, warm);
  const before = heapBytes();
  await startSome(warm, count);
  return { bytes: (heapBytes() - before) / (count - warm) };
}

function heapBytes() {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

async function fillBare(state, { key, count }) {
  state.bare ??= await openBare(state.url);
  const body = JSON.stringify(PAYLOAD);
  await state.bare.fill(key, body, count);
}

/** A consumer group of one, written by hand: entries per second. */
async function workBare(state, { key, count, most }) {
  state.bare ??= await openBare(state.url);
  const handled = new Set();
  const startMs = monotonicMs();
  while (handled.size < count) await state.bare.work(key, most, (id) => handled.add(id));
  return (count / (monotonicMs() - startMs)) * 1_000;
}
