#!/usr/bin/env node
/**
 * Orders that go through three steps, each done by a processor in a process of its own, as one orchestrator decides. With --chaos
 * they are killed while they work. At the end the sink's ledger proves that every step of every order was applied once.
 */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { open } from 'holdfast';
import { sweep } from '../staging/sweeping.mjs';
import { Chaos } from './chaos.mjs';
import { Sink } from './sink.mjs';
import { PROCESSORS, STEPS } from './steps.mjs';

const MOST_ORDERS = 1_000;
/** Something is wrong if it takes longer than this, and this much for each order. */
const DEADLINE_MS = 60_000;
const DEADLINE_PER_ORDER_MS = 500;
/** Whoever was killed is started again after this. */
const RESTART_MS = 200;
/** Why the sink refuses something. */
const WHY = { known: 'the key was seen before', stale: 'the fence is too old' };
const HELP = `npm run example:orders [-- --orders N] [--chaos] [--store URL]

Takes orders through ${STEPS.join(' → ')}: one orchestrator decides, three processors
do it, each in a process of its own. Proves at the end that every step of every order was applied once.
  --orders N    how many orders; default 8, at most ${MOST_ORDERS}
  --chaos       kill orchestrator and processors while they work (SIGKILL), and start them again
  --naive       a sink that looks at neither idempotency key nor fence; with --chaos it shows what they are for
  --store URL   redis://…, redis+sentinel://…, redis+cluster://… or sqlite:path; also HOLDFAST_STORE. Default:
                a new embedded store that is removed at the end. Elsewhere its keys have a prefix of their own, and are
                removed, too (with Sentinel and Cluster a few small ones stay)
  --help        this text`;

const flags = readArguments();
if (flags.help) {
  console.log(HELP);
  process.exit(0);
}

const startMs = performance.now();
const hasColour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (hasColour ? `\x1b[${code}m${text}\x1b[0m` : text);
const orders = Array.from({ length: flags.orders }, (_, i) => {
  return `order-${String(i + 1).padStart(String(flags.orders).length, '0')}`;
});
const folder =
  flags.store === undefined ? mkdtempSync(join(tmpdir(), 'holdfast-orders-')) : undefined;
const store = flags.store ?? `sqlite:${join(folder, 'holdfast.db')}`;
// In a store that others use, too, the example keeps to itself.
const prefix = flags.store === undefined ? '' : `orders-${randomBytes(4).toString('hex')}:`;
const kills = new Map();
const children = new Map();
const sink = new Sink({ isNaive: flags.naive });
const chaos = flags.chaos ? new Chaos(orders.length * STEPS.length, { isAlive, kill }) : null;
let isOver = false;

process.once('exit', () => {
  for (const child of children.values()) child.kill('SIGKILL');
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
])
  process.once(signal, async () => {
    isOver = true;
    for (const child of children.values()) child.kill('SIGKILL');
    await sweep(store, prefix).catch(() => {});
    process.exit(code);
  });

const quiet = { quarantine: 'off', on: { 'store.warned': () => {} } };
const holdfast = await open(store, { prefix, ...quiet }).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const url = await sink.serve(onEffect);
// Short where somebody is killed: what a dead one held is free when its time has run out.
const timings = flags.chaos ? { ttl: '3s', claim: '1s' } : { ttl: '30s', claim: '10s' };
process.env.ORDERS = JSON.stringify({ store, prefix, orders, sink: url, ...timings });

console.log(`${counted(orders.length, 'order')} through ${STEPS.join(' → ')}, on ${flags.store ?? 'a new embedded store'}:
one orchestrator, three processors, each in a process of its own${flags.chaos ? '; and somebody who kills them' : ''}.
`);
for (const name of Object.keys(PROCESSORS)) start(name);
const done = new Promise((resolve) => start('orchestrator', resolve));
const limitMs = DEADLINE_MS + orders.length * DEADLINE_PER_ORDER_MS;
const isInTime = await Promise.race([done.then(() => true), sleep(limitMs, false, { ref: false })]);
isOver = true;
await stop();
process.exit(conclude(isInTime) ? 0 : 1);

/** Starts one of the processes, and starts it again whenever it has been killed. `onDone`: it has ended as it should. */
function start(name, onDone = () => {}) {
  const file = name === 'orchestrator' ? 'orchestrator.mjs' : 'processor.mjs';
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [name]);
  children.set(name, child);
  child.on('message', (message) => hear(name, message));
  child.once('exit', async (code, signal) => {
    children.delete(name);
    if (code === 0) return onDone();
    if (isOver) return undefined;
    if (signal !== 'SIGKILL') {
      console.error(`${name} has ended by itself (${signal ?? code})`);
      process.exit(1);
    }
    await sleep(RESTART_MS);
    if (!isOver) start(name, onDone);
    return undefined;
  });
}

function isAlive(name) {
  return children.get(name)?.killed === false;
}

function kill(name, why) {
  children.get(name).kill('SIGKILL');
  kills.set(name, (kills.get(name) ?? 0) + 1);
  say(name, paint(31, `is killed, ${why}`));
}

function hear(name, { said, ...facts }) {
  if (said === 'ready' && kills.has(name)) say(name, 'is back');
  else if (said === 'hindered') say(name, `claims ${facts.order} anew: ${facts.code}`);
  else if (said === 'claimed' && !kills.has(name))
    say(name, `has claimed ${counted(facts.open, 'order')}`);
  else if (said === 'claimed')
    say(
      name,
      `goes on with ${counted(facts.open, 'order')}, and has emitted ${counted(facts.anew, 'action')} anew`,
    );
}

function onEffect(effect, apply) {
  const { order, step, by, tries } = effect;
  const told = () => {
    const outcome = apply();
    const again = tries > 1 ? `, try ${tries}` : '';
    if (outcome === 'applied') say(by, `${order}  ${step}${again}`);
    else say(by, paint(33, `${order}  ${step}${again}: refused, ${WHY[outcome]}`));
    return outcome;
  };
  return chaos === null ? told() : chaos.pass(by, sink.applied.length, told);
}

async function stop() {
  const gone = [...children.values()].map((child) => once(child, 'exit'));
  for (const child of children.values()) child.send('stop', () => {});
  await Promise.race([Promise.all(gone), sleep(5_000, null, { ref: false })]);
  sink.close();
  if (flags.store !== undefined) for (const order of orders) await holdfast.workflows.remove(order);
  await holdfast.close();
  await sweep(store, prefix);
}

/** Says what happened, and whether it was right. */
function conclude(isInTime) {
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  const dead = [...kills].map(([name, count]) => `${name} ${count}`).join(', ');
  console.log(
    `\n${counted(orders.length, 'order')}, ${orders.length * STEPS.length} steps, in ${seconds} s.`,
  );
  if (dead !== '') console.log(`Killed: ${dead}.`);
  console.log(`\n${'What the sink saw'.padEnd(20)}  came  applied  refused by key  by fence`);
  for (const step of STEPS) {
    const came = sink.ledger.filter((effect) => effect.step === step);
    const count = (outcome) => came.filter((effect) => effect.outcome === outcome).length;
    const cells = [came.length, count('applied'), count('known'), count('stale')];
    const widths = [4, 7, 14, 8];
    console.log(
      `${step.padEnd(20)}${cells.map((cell, i) => `  ${String(cell).padStart(widths[i])}`).join('')}`,
    );
  }
  const objections = sink.objections(orders);
  if (!isInTime) console.log(paint(31, '\nIt took too long: something is wrong.'));
  if (objections.length === 0)
    console.log(paint(32, '\nEvery step of every order was applied once, one after the other.'));
  else
    console.log(
      paint(
        31,
        `\nNot every step was applied once. Applied were:\n  ${objections.slice(0, 10).join('\n  ')}`,
      ),
    );
  return isInTime && objections.length === 0;
}

function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function say(who, text) {
  const time = `${((performance.now() - startMs) / 1_000).toFixed(2).padStart(6)} s`;
  console.log(`${paint(2, time)}  ${paint(36, who.padEnd(12))}  ${text}`);
}

function readArguments() {
  const options = {
    orders: { type: 'string', default: '8' },
    chaos: { type: 'boolean', default: false },
    naive: { type: 'boolean', default: false },
    store: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  };
  try {
    const { values } = parseArgs({ options });
    const orders = Number(values.orders);
    if (!Number.isInteger(orders) || orders < 1 || orders > MOST_ORDERS)
      throw new Error(`--orders is a whole number from 1 to ${MOST_ORDERS}`);
    return { ...values, store: values.store ?? (process.env.HOLDFAST_STORE || undefined), orders };
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    return process.exit(2);
  }
}
