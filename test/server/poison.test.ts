import { expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import type { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { LEASE, operatingWorld, TARGET, WORKFLOW } from '../support/operating-world.ts';
import { simDialer } from '../support/sim-link.ts';

type Cli = (...args: string[]) => unknown;
type World = Awaited<ReturnType<typeof redisWorld>>;

/** Something of each kind on a Redis, and the hands of another program on the same Redis. */
async function redisWorld() {
  let made: SimRedis | undefined;
  const onRedis = (clock: FakeClock) => {
    const time = { wallMs: () => clock.wallMs(), nowMs: () => clock.monotonicMs() };
    made = new SimRedis({ ...time, random: seededRandom(1), appendOnly: true });
    const settings = { clock, random: seededRandom(2), quarantine: 'off' } as const;
    return openRedisStoreOn(simDialer(made), settings);
  };
  const world = await operatingWorld({ history: 'on', storeOn: onRedis });
  const server = made as unknown as SimRedis;
  const client = server.connect(() => {});
  const cli: Cli = (...args) => server.execute(client, args);
  const told: string[] = [];
  const { holdfast, clock } = world;
  for (const name of ['session.unreadable', 'store.unreadable', 'log.unreadable'] as const)
    holdfast.on(name, (facts) => told.push(`${name} ${Object.values(facts)[0]}`));
  const start = async (serviceRef: string) => {
    const intent = { type: 'stream.start', serviceRef } as const;
    return (await world.intents.submit(intent, { tenant: null, client: 'c' })).session.id;
  };
  const session = await start('1:0:19');
  await clock.advance(1_000);
  return { ...world, cli, told, start, session };
}

const at = (id: string) => `{holdfast}:intent:session:${id}`;

function replaced(cli: Cli, key: string, [command, ...rest]: readonly [string, ...string[]]) {
  cli('DEL', key);
  return cli(command, key, ...rest);
}

/** What another program may do to a key, by its type; each on top of the one before. */
function poisonsOf(cli: Cli, key: string): (() => unknown)[] {
  const type = String(cli('TYPE', key));
  const fields = type === 'hash' ? (cli('HGETALL', key) as string[]) : [];
  const texts = ['null', '[]', '{"__proto__":{"a":1}}'];
  return [
    ...(type === 'hash'
      ? [() => cli('HSET', key, ...fields.map((text, i) => (i % 2 ? 'x' : text)))]
      : []),
    ...(type === 'stream' ? [() => cli('XADD', key, '*', 'gar', 'bage')] : []),
    ...(type === 'zset' ? [() => cli('ZADD', key, '-1e15', 'garbage')] : []),
    ...(type === 'string' ? texts.map((text) => () => cli('SET', key, text)) : []),
    () => replaced(cli, key, type === 'string' ? ['HSET', 'a', 'b'] : ['SET', 'x']),
  ];
}

function getsOf({ app, session }: World): string[] {
  const ids = { sessions: session, targets: TARGET, leases: LEASE, workflows: WORKFLOW };
  const gets = app.routes.filter(({ method, access }) => method === 'GET' && access !== 'open');
  const paths = gets.map(({ path }) => {
    const [, , , kind = ''] = path.split('/');
    return path.replace(/\{\w+\}/, ids[kind as keyof typeof ids]);
  });
  return [...paths, `/api/v3/sessions/${TARGET}`, '/readyz'];
}

it('P-04 whatever another program puts under any key, no route fails as if it were our fault', async () => {
  const { cli, session } = await redisWorld();
  const [, keys] = cli('SCAN', '0', 'COUNT', '100000') as [string, string[]];
  expect(keys.length).toBeGreaterThan(30);
  const failed: string[] = [];
  for (const name of keys) {
    const world = await redisWorld();
    for (const [i, poison] of poisonsOf(
      world.cli,
      name.replace(session, world.session),
    ).entries()) {
      poison();
      for (const path of getsOf(world)) {
        const { status } = await world.ask('GET', path);
        if (status >= 500) failed.push(`${name} (poison ${i}): ${path} ${status}`);
      }
    }
  }
  expect(failed).toEqual([]);
}, 60_000);

it.each([
  ['a body that is no JSON', (cli: Cli, key: string) => cli('HSET', key, 'body', 'garbage')],
  ['a body without its fields', (cli: Cli, key: string) => cli('HSET', key, 'body', '{}')],
  ['a status that is no object', (cli: Cli, key: string) => cli('HSET', key, 'status', 'null')],
  ['no revision', (cli: Cli, key: string) => cli('HSET', key, 'revision', 'x')],
  ['times that are none', (cli: Cli, key: string) => cli('HSET', key, 'created', '9e15')],
  ['another type', (cli: Cli, key: string) => replaced(cli, key, ['SET', 'x'])],
])(
  'P-04 a session with %s leaves the others as they are, and is told of once',
  async (_, poison) => {
    const { ask, cli, session, start, told, clock } = await redisWorld();
    const other = await start('1:0:20');
    poison(cli, at(session));
    for (let round = 0; round < 3; round++) {
      const { status, json } = await ask('GET', '/api/v3/sessions?kind=live');
      expect([status, json.sessions.map(({ id }: { id: string }) => id)]).toEqual([200, [other]]);
      await clock.advance(60_000);
    }
    expect((await ask('GET', `/api/v3/sessions/${session}`)).status).toBe(409);
    const stop = { type: 'stream.stop', sessionId: other };
    expect((await ask('POST', '/api/v3/intents', { body: { ...stop, force: true } })).status).toBe(
      202,
    );
    expect(told).toEqual([`session.unreadable ${session}`]);
  },
);

it('P-04 a workflow that another program has overwritten leaves the others listed, and is told of once', async () => {
  const { ask, cli, holdfast, told } = await redisWorld();
  await holdfast.workflows.claim('another');
  replaced(cli, '{holdfast}:workflow:facts:order', ['SET', 'x']);
  for (let round = 0; round < 2; round++) {
    const { json } = await ask('GET', '/api/v3/workflows');
    expect(json.workflows.map(({ id }: { id: string }) => id)).toEqual(['another']);
  }
  expect((await ask('GET', '/api/v3/workflows/order')).status).toBe(409);
  expect(told).toHaveLength(1);
});

it('P-04 entries of another program in the log are skipped, and told of once', async () => {
  const { ask, cli, holdfast, clock, told } = await redisWorld();
  const events = async () => {
    const { json } = await ask('GET', '/api/v3/history');
    return json.events.map(({ event }: { event: string }) => event);
  };
  const before = await events();
  const real = { at: clock.wallMs(), instance: 'me', event: 'lease.lost' };
  const hostile = [
    'garbage',
    'null',
    '[]',
    JSON.stringify({ ...real, event: '__proto__' }),
    JSON.stringify({ ...real, at: 1e300 }),
    JSON.stringify({ ...real, instance: '' }),
    JSON.stringify({ ...real, key: 'x'.repeat(70_000) }),
  ];
  for (const entry of hostile) cli('XADD', 'holdfast:log', '*', 'v', entry);
  expect(await events()).toEqual(before);
  await holdfast.targets.add({ id: 'later', url: 'http://x/' });
  await clock.advance(1_000);
  expect(await events()).toEqual(['session.added', ...before]);
  expect(told).toHaveLength(1);
});

it('P-04 of an entry in the log, facts that no instance writes are left out', async () => {
  const { ask, cli, clock } = await redisWorld();
  const facts = '"__proto__":{"polluted":1},"key":{"a":1},"leaseClass":"poll","heldForMs":1e999';
  const entry = `{"at":${clock.wallMs()},"instance":"me","event":"lease.lost",${facts}}`;
  cli('XADD', 'holdfast:log', '*', 'v', entry);
  const { json, text } = await ask('GET', '/api/v3/history?limit=1');
  expect(json.events[0]).toMatchObject({ event: 'lease.lost', leaseClass: 'poll' });
  expect(text).not.toMatch(/__proto__|polluted|heldForMs|"a"/);
});

it('P-04 one who follows the log passes an entry of another program once', async () => {
  const { cli, holdfast, clock } = await redisWorld();
  const end = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    for await (const one of holdfast.log.follow({ from: 'now', signal: end.signal }))
      seen.push(one.kind === 'event' ? one.event.event : one.kind);
  })();
  await clock.advance(1_000);
  cli('XADD', 'holdfast:log', '*', 'v', 'garbage');
  await clock.advance(3_000);
  await holdfast.targets.add({ id: 'later', url: 'http://x/' });
  await clock.advance(3_000);
  expect(seen).toEqual(['session.added']);
  end.abort();
  await clock.advance(3_000);
  await following;
});
