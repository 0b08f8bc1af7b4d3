import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { startCounter } from '../fleet-counter.mjs';
import { absolute } from '../report.mjs';
import { median } from '../statistics.mjs';

/** Within a round, one after the other; a workflow has at most 1,000 steps. */
const EACH = 40;
const TURNS = 5;
/** Rounds that do not count: code is compiled for speed only after it has run for a while. */
const WARM_UP = 3;
const MINUTE_MS = 60_000;
/** How an open Holdfast examines its server, whether it has workflows or not. It is in the notes. */
const CONNECTION = new Set(['PING', 'INFO', 'TIME', 'examine']);

/** What a call adds to `emit` and `result`, and what keeping a step costs next to an emit. */
export const workflowCalls = { name: 'calls and steps of a function', run: runCalls };

async function runCalls(bench) {
  const found = await bench.onRedis((redis) => race(bench, redis));
  const ratio = (a, b) => median(found[a].map((us, i) => us / found[b][i]));
  const us = (what) => `${what}: ${Math.round(median(found[what]))} µs`;
  return [
    absolute({
      requirement: 'B-15',
      measure: 'call, next to emit and result',
      unit: '×',
      figures: { [OURS.name]: ratio('call', 'emitAndResult') },
      atMost: 1.1,
      notes: [us('call'), us('emitAndResult')],
    }),
    absolute({
      requirement: 'B-16',
      measure: 'step, next to one emit',
      unit: '×',
      figures: { [OURS.name]: ratio('step', 'emit') },
      atMost: 1.5,
      notes: [us('step'), us('emit')],
    }),
  ];
}

async function race(bench, { url }) {
  const [instance, processor] = [await bench.instance(url), await bench.instance(url)];
  await processor.ask('work', { name: 'bench' });
  const found = { call: [], emitAndResult: [], step: [], emit: [] };
  for (let round = 1 - WARM_UP; round <= bench.plan.rounds; round++) {
    bench.progress(workflowCalls.name, `round ${round} of ${bench.plan.rounds}`);
    const of = `functions-${round + WARM_UP}`;
    await instance.ask('claim', { of, count: 1 });
    const turns = { call: [], emitAndResult: [], step: [], emit: [] };
    for (let turn = 0; turn < TURNS; turn++) {
      const ways = Object.keys(turns);
      // Another order each time: what else the machine does hits all alike.
      for (let i = 0; i < ways.length; i++) {
        const way = ways[(i + turn) % ways.length];
        const facts = { of, way, each: EACH, from: turn * EACH, target: 'bench' };
        turns[way].push(await instance.ask('takeSteps', facts));
      }
    }
    if (round <= 0) continue;
    for (const way of Object.keys(turns)) found[way].push(median(turns[way]));
  }
  await processor.ask('stopWorking', {});
  return found;
}

/** What do sleeping workflows ask of Redis, and of the process that would wake them? */
export const workflowSleeping = { name: 'sleeping workflows', run: runSleeping };

async function runSleeping(bench) {
  const count = bench.plan.sleepers;
  const found = await bench.onRedis((redis) => sleeping(bench, redis, count));
  const measure = `${count.toLocaleString('en')} ${workflowSleeping.name}`;
  return [
    absolute({
      requirement: 'B-17',
      measure: `${measure}: requests for them`,
      unit: 'a minute',
      figures: { [OURS.name]: found.requests },
      atMost: 10,
      notes: found.notes,
    }),
    absolute({
      requirement: 'B-17',
      measure: `${measure}: heap of each`,
      unit: 'bytes',
      figures: { [OURS.name]: found.bytes },
      atMost: 200,
    }),
  ];
}

async function sleeping(bench, redis, count) {
  const counter = await startCounter(redis);
  try {
    const instance = await bench.instance(counter.url);
    bench.progress(workflowSleeping.name, 'putting them to sleep');
    const { bytes } = await instance.ask('putToSleep', { count }, { withinMs: 600_000 });
    counter.take();
    bench.progress(workflowSleeping.name, 'a minute of nothing');
    await sleep(MINUTE_MS);
    const counts = [...counter.take()];
    const own = counts.filter(([what]) => !CONNECTION.has(what));
    const requests = own.reduce((sum, [, { calls }]) => sum + calls, 0);
    return { requests, bytes, notes: counts.map(([what, { calls }]) => `${what}: ${calls}`) };
  } finally {
    counter.stop();
  }
}
