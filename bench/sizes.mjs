/**
 * What is kept, and what it takes: bytes in the store for one of each, on SQLite and on Redis. `node bench/sizes.mjs`, after a build.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'libsql';
import { createClient } from 'redis';
import { open } from '../dist/index.js';
import { startRedis } from './redis.mjs';

const COUNT = 2_000;
const CALL = { timeoutMs: 30_000 };
const numbers = Array.from({ length: COUNT }, (_, index) => index);

/** Each makes `COUNT` of something; it is kept when this is over. */
const KINDS = {
  'a lease that is held, with its fence': async (holdfast) => {
    await Promise.all(numbers.map((n) => holdfast.acquire(`device:${n}`)));
  },
  'a record of 100 characters': async (holdfast) => {
    for (const n of numbers) await holdfast.records.put(`record-${n}`, 'x'.repeat(98));
  },
  'a session that is polled, with a URL of 40 characters': async (holdfast) => {
    const url = `https://example.com/${'x'.repeat(20)}`;
    await holdfast.sessions.addAll(numbers.map((n) => ({ id: `device-${n}`, url, every: '5s' })));
  },
  'the last result of a target, with its thirty polls': async (_, store) => {
    const recent = Array.from({ length: 30 }, (_, n) => [1_794_804_862_399 + n, 12.3, 1]);
    const value = { status: 200, latencyMs: 12.3, size: 512, truncated: false, changed: false };
    const by = 'api-1794804862399000000-1f2e3d4c';
    const result = { at: 1_794_804_862_399, by, ok: true, tookMs: 12.3, value, recent };
    const fence = 1_794_804_862_399_000;
    for (let at = 0; at < COUNT; at += 500) {
      const writes = numbers.slice(at, at + 500);
      await store.records.put(
        'result',
        writes.map((n) => ({ id: `d-${n}`, value: result, fence })),
        CALL,
      );
    }
  },
  'an entry of the shared log': async (_, store) => {
    const entry = (n) => ({
      at: 1_794_804_862_399,
      instance: 'api-1794804862399000000-1f2e3d4c',
      event: 'lease.acquired',
      leaseClass: 'poll',
      key: `device-${n}`,
      holder: 'api-1794804862399000000-1f2e3d4c',
      fence: '1794804862399000',
    });
    for (let at = 0; at < COUNT; at += 500)
      await store.log.append(numbers.slice(at, at + 500).map(entry), CALL);
  },
  'a session of an intent': async (holdfast) => {
    const intents = holdfast.intents({ secret: 'x'.repeat(32) });
    for (const n of numbers)
      await intents.submit(
        { type: 'stream.start', serviceRef: `1:0:19:${n}` },
        { tenant: null, client: 'web' },
      );
  },
  'a workflow with three steps that are done': async (holdfast) => {
    const handlers = { STEP: async () => ({ ok: true }) };
    const processor = holdfast.processor({ name: 'steps', role: 'compute', handlers });
    await processor.start();
    for (let at = 0; at < COUNT; at += 50)
      await Promise.all(numbers.slice(at, at + 50).map((n) => threeSteps(holdfast, n)));
    await processor.stop();
  },
};

async function threeSteps(holdfast, n) {
  const workflow = await holdfast.workflows.claim(`order-${n}`);
  for (let step = 0; step < 3; step++) {
    const { action_id } = await workflow.emit('STEP', { step }, { target: 'steps' });
    await workflow.result(action_id);
    await workflow.updateState({ step });
  }
  await workflow.release();
}

async function measureSqlite(make) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sizes-'));
  const path = join(folder, 'holdfast.db');
  const size = () => {
    const db = new Database(path);
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    db.close();
    return statSync(path).size;
  };
  try {
    return await between(`sqlite:${path}`, size, make);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureRedis(make) {
  const server = await startRedis();
  const client = await createClient({ url: server.url }).connect();
  const size = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
  try {
    return await between(server.url, size, make);
  } finally {
    await client.close();
    await server.stop();
  }
}

/** How much larger the store is for what was made; measured while nothing runs. */
async function between(url, size, make) {
  const options = { quarantine: 'off', history: 'off', on: { 'store.warned': () => {} } };
  const holdfast = await open(url, options);
  // The first of everything makes what all share.
  await holdfast.records.put('first', 0);
  const store = await storeOf(url, options);
  const before = await size();
  await make(holdfast, store);
  const after = await size();
  await holdfast.close({ within: 1 });
  await store.close();
  return Math.round((after - before) / COUNT);
}

/** The store beneath, for what has no door of its own. */
async function storeOf(url, options) {
  const { openStore } = await import('../dist/store/open-store.js');
  const { systemClock } = await import('../dist/core/clock.js');
  const { systemRandom } = await import('../dist/core/random.js');
  const { Emitter } = await import('../dist/core/events.js');
  const events = new Emitter();
  events.on('store.warned', () => {});
  const { quarantine } = options;
  const parts = { clock: systemClock, random: systemRandom, events, quarantine };
  return (await openStore(url, parts)).store;
}

console.log(`bytes for one, of ${COUNT}`.padEnd(60), 'SQLite'.padStart(8), 'Redis'.padStart(8));
for (const [name, make] of Object.entries(KINDS)) {
  const [sqlite, redis] = [await measureSqlite(make), await measureRedis(make)];
  console.log(name.padEnd(60), String(sqlite).padStart(8), String(redis).padStart(8));
}
process.exit(0);
