import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Link } from '../../src/store/redis/client/link.ts';
import { scripts } from '../../src/store/redis/scripts.ts';
import fc from '../support/fast-check.ts';
import { answerOf, LUA_EXAMPLES } from '../support/lua-examples.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { flowStep, takeFlowStep } from './support/flow-steps.ts';
import { intentStep, takeIntentStep } from './support/intent-steps.ts';
import { command, type ScriptCall, scriptCall } from './support/redis-steps.ts';
import { RedisTwins, type Twin } from './support/redis-twins.ts';
import { storeStep, takeStoreStep } from './support/store-steps.ts';

// What the simulator runs on must not drift from what runs in production: the same is asked of a real
// Redis and of the simulated one, and they have to answer the same.

/** How many sequences are tried: few here; set HOLDFAST_RUNS to 10000 for a long look. */
const RUNS = Number(process.env.HOLDFAST_RUNS ?? 150);
/** How far two times left may be apart: both servers are asked at once, but on a busy machine. */
const TOLERANCE_MS = 900;
/** For so long a sequence of steps may take, all of them together. */
const LIMIT_MS = 30_000 + RUNS * 500;

let redis: RedisServer;
let twins: RedisTwins;
beforeAll(async () => {
  redis = await startRedis();
  twins = await RedisTwins.open(redis);
});
afterAll(async () => {
  await twins.close();
  await redis.stop();
});

const plainStep = fc.oneof({ weight: 3, arbitrary: scriptCall }, { weight: 2, arbitrary: command });
const step = fc.oneof(
  { weight: 12, arbitrary: plainStep },
  { weight: 8, arbitrary: storeStep },
  { weight: 8, arbitrary: flowStep },
  { weight: 6, arbitrary: intentStep },
  {
    weight: 1,
    arbitrary: fc.record({
      trouble: fc.constantFrom('no memory', 'replica', 'flush', 'scripts', 'elapse', 'walk'),
      meanwhile: fc.array(plainStep, { minLength: 1, maxLength: 5 }),
    }),
  },
);
type PlainStep = typeof plainStep extends fc.Arbitrary<infer S> ? S : never;
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Scripts that have given something other than an error: one that never does is not compared. */
const answered = new Set<string>();

async function runScript({ link, telling }: Twin, { verb, keys, args }: ScriptCall) {
  const script = scripts[verb];
  const words = [...keys, ...args].map((text) => telling.resolve(text));
  const reply = await link
    .send(['EVALSHA', script.sha, String(keys.length), ...words])
    .catch((error: Error) => {
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      return link.send(['EVAL', script.source, String(keys.length), ...words]);
    });
  answered.add(verb);
  return inOrder(verb, reply);
}

async function runCommand({ link, telling }: Twin, words: readonly string[]) {
  const reply = await link.send(words.map((text) => telling.resolve(text)));
  return inOrder(words[0]?.toUpperCase() ?? '', reply);
}

/** What Redis gives in no order, in one; and what is a moment ago by its size, as a time. */
function inOrder(name: string, reply: unknown): unknown {
  if (!Array.isArray(reply)) return reply;
  // Which names a page has is up to the server.
  if (name === 'SCAN') return 'a page';
  if (name === 'SMEMBERS') return [...reply].sort();
  if (name === 'member/list') return [...reply].sort((a, b) => (a[0] < b[0] ? -1 : 1));
  if (name === 'HGETALL') return fields(reply);
  if (name !== 'server/examine') return reply;
  if (reply[0] === 'BOUNDS' || reply[0] === 'UNUSED') return reply;
  const [origin, looks, verdicts] = reply as [string, number, [string, number, string][]];
  return [origin, looks, verdicts.map(([era, agoMs, why]) => [era, agoMs + 1_000, why])];
}

function fields(list: readonly unknown[]): Record<string, unknown> {
  const named = list.flatMap((name, i) => (i % 2 === 0 ? [[String(name), list[i + 1]]] : []));
  return Object.fromEntries(named);
}

async function compare(what: unknown, question: (twin: Twin) => Promise<unknown>): Promise<void> {
  const [real, simulated] = await twins.ask(question);
  const found = difference(real, simulated);
  expect(found, JSON.stringify({ what, real, simulated })).toBeUndefined();
}

/** Where two answers differ first, and in what. */
function difference(real: unknown, simulated: unknown, where = ''): string | undefined {
  if (!isObject(real) || !isObject(simulated))
    return Object.is(real, simulated)
      ? undefined
      : `${where}: really ${JSON.stringify(real)}, simulated ${JSON.stringify(simulated)}`;
  if ('leftMs' in real && 'leftMs' in simulated) {
    const apartMs = Math.abs(Number(real.leftMs) - Number(simulated.leftMs));
    return apartMs <= TOLERANCE_MS ? undefined : `${where}: ${apartMs} ms apart`;
  }
  const names = new Set([...Object.keys(real), ...Object.keys(simulated)]);
  for (const name of names) {
    const found = difference(real[name], simulated[name], `${where}/${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

async function take(each: Step): Promise<void> {
  if ('trouble' in each) return takeTrouble(each.trouble, each.meanwhile);
  if (Array.isArray(each) || 'args' in each) return takePlain(each);
  if ('intent' in each) await compare(each, (twin) => takeIntentStep(twin, each));
  else if ('flow' in each) await compare(each, (twin) => takeFlowStep(twin, each));
  else await compare(each, (twin) => takeStoreStep(twin, each));
}

async function takePlain(each: PlainStep): Promise<void> {
  if (Array.isArray(each)) await compare(each, (twin) => runCommand(twin, each));
  else await compare(each, (twin) => runScript(twin, each));
}

async function takeTrouble(trouble: string, meanwhile: readonly PlainStep[]): Promise<void> {
  const { server, real } = twins;
  if (trouble === 'flush') await compare(trouble, ({ link }) => link.send(['FLUSHALL']));
  if (trouble === 'scripts') await compare(trouble, ({ link }) => link.send(['SCRIPT', 'FLUSH']));
  if (trouble === 'walk') await compare(trouble, ({ link }) => walkOver(link));
  if (trouble === 'elapse') await elapse();
  try {
    if (trouble === 'no memory') {
      await real.link.send(['CONFIG', 'SET', 'maxmemory', '1']);
      server.isOutOfMemory = true;
    }
    if (trouble === 'replica') {
      await real.link.send(['REPLICAOF', '127.0.0.1', '1']);
      server.isReadOnly = true;
    }
    for (const each of meanwhile) await takePlain(each);
  } finally {
    if (server.isOutOfMemory) await real.link.send(['CONFIG', 'SET', 'maxmemory', '0']);
    if (server.isReadOnly) await real.link.send(['REPLICAOF', 'NO', 'ONE']);
    server.isOutOfMemory = false;
    server.isReadOnly = false;
  }
}

const ENDING = [
  ...['lease:a', 'fence:{lease:a}', 'poll:node:h1', 'meta:{c:r1}'],
  '{holdfast}:workflow:lease:w1',
];

/** What has a moment to live yet, has none then. */
async function elapse(): Promise<void> {
  for (const key of ENDING) await compare('elapse', ({ link }) => link.send(['PEXPIRE', key, '2']));
  const startedAt = performance.now();
  await until(() => performance.now() - startedAt > 5, { what: '5 ms to pass', every: 1 });
}

/** All names, in small steps. */
async function walkOver(link: Link): Promise<string[]> {
  const names: string[] = [];
  let cursor = '0';
  do {
    const page = await link.send(['SCAN', cursor, 'MATCH', '*[:c]*', 'COUNT', '3']);
    names.push(...(page as [string, string[]])[1]);
    cursor = (page as [string, string[]])[0];
  } while (cursor !== '0');
  return [...new Set(names)].sort();
}

const READERS: Record<string, readonly string[]> = {
  string: ['GET', 'KEY'],
  hash: ['HGETALL', 'KEY'],
  set: ['SMEMBERS', 'KEY'],
  list: ['LRANGE', 'KEY', '0', '-1'],
  zset: ['ZRANGE', 'KEY', '0', '-1', 'WITHSCORES'],
  stream: ['XRANGE', 'KEY', '-', '+'],
};

/** Everything there is, and for how long yet. */
async function contents(twin: Twin): Promise<unknown> {
  const found: unknown[] = [];
  for (const name of await walkOver(twin.link)) {
    const kind = String(await twin.link.send(['TYPE', name]));
    const words = (READERS[kind] ?? []).map((word) => (word === 'KEY' ? name : word));
    found.push([name, await runCommand(twin, words), await twin.link.send(['PTTL', name])]);
  }
  return found;
}

it(
  'the simulated Redis gives the same answers as a real one, whatever is asked',
  async () => {
    const property = fc.asyncProperty(
      fc.array(step, { maxLength: 80, size: 'max' }),
      async (steps) => {
        await twins.begin();
        for (const each of steps) await take(each);
        await compare('contents', contents);
        await twins.settle();
        await compare('messages', async ({ messages }) => [...messages].sort());
      },
    );
    await fc.assert(property, { numRuns: RUNS });
    expect([...answered].sort()).toEqual(Object.keys(scripts).sort());
  },
  LIMIT_MS,
);

it('Lua by example is what a real Redis makes of it', async () => {
  const { link } = twins.real;
  await link.send(['FLUSHALL']);
  const given: unknown[] = [];
  for (const [source] of LUA_EXAMPLES) {
    const reply = await link.send(['EVAL', source, '0']).catch((error: Error) => error);
    given.push([source, answerOf(reply)]);
  }
  expect(given).toEqual(LUA_EXAMPLES);
});

it('a key lives through the whole millisecond in which it ends, in a real Redis too', async () => {
  const { link } = twins.real;
  const lastWords = await until(
    async () => {
      await link.send(['SET', 'brief', 'v', 'PX', '3']);
      let left = 3;
      const seen = new Set<number>();
      while (left !== -2) {
        // Many at once: a millisecond is over soon.
        const asked = Array.from({ length: 50 }, () => link.send(['PTTL', 'brief']));
        for (const reply of await Promise.all(asked)) {
          left = Number(reply);
          seen.add(left);
        }
      }
      return seen.has(0) && [...seen];
    },
    { what: 'somebody to look in the last millisecond', every: 0 },
  );
  expect(lastWords.slice(-2)).toEqual([0, -2]);
});
