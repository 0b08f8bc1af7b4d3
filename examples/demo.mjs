#!/usr/bin/env node
/**
 * Six seconds of one lease: three instances want it, one gets it, one hands it on, one is cut off from the store, and
 * the one that was cut off can not do harm. Runs in memory; with a Redis URL it runs on Redis, cut for real by a proxy.
 */
import { parseArgs } from 'node:util';
import { createMemoryStore, open, systemClock } from 'holdfast';
import { FaultProxy, faultyStore } from 'holdfast/testing';

const HELP = `npm start [-- --store redis://host:port]

Shows one lease passing between three instances, and what happens to the one that is cut off.
  --store URL   redis://… or rediss://…; default: in memory, nothing to install
  --help        this text`;

const values = readArguments();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}

function readArguments() {
  const options = { store: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    return process.exit(2);
  }
}

const KEY = 'nightly-report';
const TTL_MS = 3_000;
const colour = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
const PAINT = { ana: 36, ben: 33, cleo: 35 };
const startMs = performance.now();

function say(who, text) {
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(2).padStart(6);
  console.log(`${paint(2, `${seconds} s`)}  ${paint(PAINT[who] ?? 0, who.padEnd(5))} ${text}`);
}

function tell(text) {
  console.log(`\n${paint(1, text)}`);
}

/** An instance of its own, with a connection that can be cut. */
const connect = values.store === undefined ? inMemory() : onRedis(values.store);

function inMemory() {
  const shared = createMemoryStore();
  return async (name) => {
    const { store, faults } = faultyStore(shared, systemClock);
    const holdfast = await open(store, { name });
    const cut = (isCut) => {
      faults.hang = isCut;
    };
    return { name, holdfast, cut, end: () => holdfast.close({ within: 0 }) };
  };
}

function onRedis(url) {
  const { hostname, port } = new URL(url);
  return async (name) => {
    const target = { host: hostname, port: Number(port || 6379) };
    const proxy = await FaultProxy.start({ target });
    const through = new URL(url);
    through.host = `127.0.0.1:${proxy.port}`;
    const holdfast = await open(through.href, { name, prefix: 'demo:', quarantine: 'off' });
    const cut = async (isCut) => {
      await (isCut ? proxy.halfOpen() : proxy.pass());
      // What was sent into the void is gone for good: only a new connection brings ben back.
      if (!isCut) proxy.reset();
    };
    const end = async () => {
      await holdfast.close({ within: 0 });
      await proxy.close();
    };
    return { name, holdfast, cut, end };
  };
}

async function join(name) {
  const instance = await connect(name);
  const { holdfast } = instance;
  holdfast.on('lease.acquired', ({ fence }) => say(name, paint(32, `has it, fence ${fence}`)));
  holdfast.on('lease.uncertain', ({ remainingMs }) =>
    say(
      name,
      paint(
        33,
        `is not sure any more: no new work; what runs may finish within ${Math.round(remainingMs)} ms`,
      ),
    ),
  );
  holdfast.on('lease.lost', ({ reason, heldForMs }) =>
    say(
      name,
      paint(
        31,
        `has lost it (${reason}) after ${Math.round(heldForMs)} ms, before anyone else can have it`,
      ),
    ),
  );
  holdfast.on('lease.released', () => say(name, 'lets go'));
  return instance;
}

const want = async ({ name, holdfast }, options) => {
  const result = await holdfast.acquire(KEY, { ttl: TTL_MS, ...options });
  if (!result.ok)
    say(
      name,
      `may not have it: ${result.reason}, free in ${Math.round(result.expiresInMs)} ms at the latest`,
    );
  return result.ok ? result.lease : null;
};

console.log(
  `One owner for '${KEY}', ${values.store === undefined ? 'in memory' : 'on Redis'}. The lease lasts ${TTL_MS / 1_000} s and is renewed while its holder lives.`,
);
const [ana, ben, cleo] = await Promise.all(['ana', 'ben', 'cleo'].map(join)).catch((error) => {
  console.error(`${values.store} can not be used: ${error.message}`);
  process.exit(1);
});

tell('Three instances want the same work.');
const first = await want(ana);
await want(ben);
const bens = want(ben, { wait: '20s' });
say('ben', 'waits in line, without polling');
await systemClock.sleep(1_500);

tell('The holder lets go; the one who waits has it a moment later.');
await first.release();
const second = await bens;
const cleos = want(cleo, { wait: '20s' });
say('cleo', 'waits in line');
await systemClock.sleep(1_000);

tell('Now ben is cut off from the store: nothing arrives, nothing answers.');
await ben.cut(true);
say('ben', 'is cut off, and does not know it');
const third = await cleos;

tell('ben wakes up and wants to write what it was working on.');
await cleo.holdfast.records.put(KEY, { by: 'cleo' }, { fence: third.fence });
await ben.cut(false);
say('ben', `asks first: isHeld() is ${second.isHeld()}`);
try {
  await ben.holdfast.records.put(KEY, { by: 'ben' }, { fence: second.fence });
  say('ben', paint(31, 'wrote over it: this must not happen'));
  process.exitCode = 1;
} catch (error) {
  say(
    'ben',
    `writes all the same, and is refused: ${error.code}, fence ${error.fence} is older than ${error.seen}`,
  );
}
const record = await cleo.holdfast.records.get(KEY);
say('cleo', `its record stands: ${JSON.stringify(record.value)}`);
await third.release();
await Promise.all([ana, ben, cleo].map(({ end }) => end()));

tell('What to try next');
console.log(`  npm start -- --store redis://localhost:6379    the same on Redis, with the connection really cut
  npm run bench:leases                           side by side with redlock, redis-semaphore, redlock-universal
  README.md                                      seven lines to use it in your own service`);
