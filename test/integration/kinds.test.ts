import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { HoldfastClient, type RunSession } from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { startUp, type UpInstance } from './support/instances.ts';
import { type Ground, redisGrounds, sqliteGrounds } from './support/intent-ground.ts';

leaveNothingBehind();
// Leases expire in real time, on a machine that may be busy.
vi.setConfig({ testTimeout: 90_000 });

const GROUNDS = [sqliteGrounds(), redisGrounds()];
afterAll(() => Promise.all(GROUNDS.map((kind) => kind.end())));

const START_MS = 15_000;
const TOKEN = 'a-token-of-the-tests';
const env = { HOLDFAST_API_TOKEN: TOKEN };

const STRICT = `{ '~standard': { version: 1, vendor: 'test', validate: (value) =>
  typeof value.n === 'number' ? { value } : { issues: [{ message: 'must be a number', path: ['n'] }] } } }`;

/** A folder for what commands write, and the configuration of kinds that use it. */
function setting({ at }: Ground) {
  const folder = privateFolder();
  const path = (name: string) => join(folder, name);
  // Writes its params, its fence and its attempt; waits for a file `go`, or fails if `fail` exists.
  const script = [
    'n=$(cat <&3); printf "%s\\n" "$n" >> "$DIR/params"',
    'echo "$HOLDFAST_ATTEMPT $HOLDFAST_FENCE $HOLDFAST_SLOT $HOLDFAST_SESSION_KEY" >> "$DIR/begun"',
    '[ -e "$DIR/fail" ] && exit 7',
    'while [ ! -e "$DIR/go" ]; do sleep 0.05; done',
  ].join('\n');
  const job = (more: string) =>
    `{ run: { command: ['sh', '-c', ${JSON.stringify(script)}], env: { DIR: '${folder}' } }, ${more} }`;
  const config = [
    `prefix: '${at.prefix}', pools: { gpus: 2 }, worker: { ttl: '3s', grace: '300ms' }`,
    `kinds: { gpu: ${job("pool: 'gpus', tries: 3")}, short: ${job("timeLimit: '500ms'")}`,
    'echo: { run: async (params, { attempt, fence, session }) => ({ params, attempt, fence, session }) }',
    `strict: { params: ${STRICT} } }`,
  ].join(', ');
  const lines = (name: string) =>
    existsSync(path(name)) ? readFileSync(path(name), 'utf8').trimEnd().split('\n') : [];
  const begun = (count: number) =>
    until(() => lines('begun').length >= count && lines('begun'), {
      what: `${count} commands to begin`,
      deadlineMs: START_MS,
    });
  const go = (name = 'go') => writeFileSync(path(name), '');
  const up = (name: string, roles: string, kinds?: string) =>
    startUp(name, {
      ...{ at, roles, env, config },
      args: kinds === undefined ? [] : ['--kinds', kinds],
    });
  const configFile = path('holdfast.config.mjs');
  writeFileSync(configFile, `export default { ${config} };`);
  const holdfast = (...args: string[]) => cli([...args, '--config', configFile], { at });
  return { up, lines, begun, go, holdfast };
}

async function clientOf(up: UpInstance): Promise<HoldfastClient> {
  const { url } = await up.says(/^listens on /, START_MS);
  await up.says(/^is up/, START_MS);
  return new HoldfastClient({ url: String(url), token: TOKEN });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

function ended(client: HoldfastClient, id: string): Promise<RunSession> {
  return client.waitFor(id, { until: 'ENDED', timeout: '60s' });
}

describe.each(GROUNDS)('sessions of declared kinds, over $name,', (kind) => {
  it('B-11 B-13 run on a pool of two; a third ends with R_NO_SLOT; a killed worker’s are tried again with a higher fence', async () => {
    await using ground = await kind.make();
    const { up, begun, go, lines } = setting(ground);
    await using api = up('api', 'api');
    const client = await clientOf(api);
    await using one = up('one', 'worker', 'gpu');
    await one.says(/^is up/, START_MS);
    const params = { file: 'a b\'; $(touch /tmp/x) \n"ü"', n: [1, null] };
    const first = await client.startKind({ kind: 'gpu', key: 'a', params });
    const second = await client.startKind({ kind: 'gpu', key: 'b', params });
    const before = await begun(2);
    const third = await client.startKind({ kind: 'gpu', key: 'c' });
    expect(await ended(client, third.sessionId)).toMatchObject({
      ...{ reason: 'R_NO_SLOT', outcome: 'REJECTED_NO_SLOT', kind: 'gpu', key: 'c' },
    });
    one.running.signal('SIGKILL');
    await one.running.end();
    await using two = up('two', 'worker', 'gpu');
    const after = await begun(4);
    go();
    for (const { sessionId } of [first, second])
      expect(await ended(client, sessionId)).toMatchObject({
        ...{ reason: 'R_PIPELINE_ENDED', outcome: 'COMPLETED', losses: 1, params, worker: two.id },
      });
    for (const line of lines('params')) expect(JSON.parse(line)).toEqual(params);
    for (const key of ['a', 'b']) {
      const of = (all: readonly string[]) => all.filter((line) => line.endsWith(` ${key}`));
      const [old, again, ...more] = of(after).map((line) => line.split(' '));
      expect(more).toEqual([]);
      expect([old?.[0], again?.[0]]).toEqual(['1', '2']);
      expect(BigInt(again?.[1] ?? 0)).toBeGreaterThan(BigInt(old?.[1] ?? 0));
    }
    expect(before).toHaveLength(2);
  });

  it('B-11 are tried three times and no more when they fail, and a function keeps its result', async () => {
    await using ground = await kind.make();
    const { up, go, lines, begun } = setting(ground);
    await using instance = up('both', 'api,worker');
    const client = await clientOf(instance);
    go('fail');
    const failing = await client.startKind({ kind: 'gpu', key: 'a' });
    expect(await ended(client, failing.sessionId)).toMatchObject({
      ...{ reason: 'R_PIPELINE_FAILED', failures: 2, detail: { code: 7 } },
    });
    expect(lines('begun').map((line) => line.split(' ')[0])).toEqual(['1', '2', '3']);
    const echo = await client.startKind({ kind: 'echo', key: 'k', params: { a: 1 } });
    const done = await ended(client, echo.sessionId);
    expect(done.detail?.result).toMatchObject({ params: { a: 1 }, attempt: 1 });
    expect(done.detail?.result).toMatchObject({ session: { id: echo.sessionId, key: 'k' } });
    await begun(3);
  });

  it('B-11 end at their time limit with R_TIME_LIMIT', async () => {
    await using ground = await kind.make();
    const { up, begun } = setting(ground);
    await using instance = up('both', 'api,worker');
    const client = await clientOf(instance);
    const { sessionId } = await client.startKind({ kind: 'short' });
    await begun(1);
    expect(await ended(client, sessionId)).toMatchObject({
      ...{ reason: 'R_TIME_LIMIT', outcome: 'FAILED', losses: 0, failures: 0 },
    });
  });

  it('B-12 wait until a worker takes their kind; two workers with different kinds take their own', async () => {
    await using ground = await kind.make();
    const { up, go, begun } = setting(ground);
    await using api = up('api', 'api');
    const client = await clientOf(api);
    await using echoes = up('echoes', 'worker', 'echo');
    await echoes.says(/^is up: runs echo with a function/, START_MS);
    const gpu = await client.startKind({ kind: 'gpu', key: 'a' });
    const echo = await client.startKind({ kind: 'echo', key: 'a' });
    expect(await ended(client, echo.sessionId)).toMatchObject({ worker: echoes.id });
    expect(await client.session(gpu.sessionId)).toMatchObject({ state: 'NEW', worker: null });
    await using gpus = up('gpus', 'worker', 'gpu');
    await begun(1);
    go();
    expect(await ended(client, gpu.sessionId)).toMatchObject({ worker: gpus.id });
  });

  it('B-14 are started in a batch, listed by kind, key and state, and stopped by key: by HTTP and on the command line', async () => {
    await using ground = await kind.make();
    const { up, begun, holdfast } = setting(ground);
    await using instance = up('both', 'api,worker', 'gpu');
    const client = await clientOf(instance);
    const results = await client.startAll([
      { kind: 'gpu', key: 'a' },
      { kind: 'nope' },
      { kind: 'strict', params: { n: 'x' } },
      ...Array.from({ length: 120 }, (_, n) => ({ kind: 'strict', key: `k${n}`, params: { n } })),
    ]);
    expect(results.slice(0, 3)).toMatchObject([
      { status: 202, accepted: { kind: 'gpu', key: 'a' } },
      { status: 400, problem: { errors: [{ field: 'kind' }] } },
      { status: 400, problem: { errors: [{ field: 'params.n', rule: 'must be a number' }] } },
    ]);
    expect(results.slice(3).map(({ status }) => status)).toEqual(Array(120).fill(202));
    await begun(1);
    const listed = await all(client.sessions({ kind: 'strict', limit: 50 }));
    expect(listed).toHaveLength(120);
    const one = await all(client.sessions({ kind: 'strict', key: 'k7' }));
    expect(one).toMatchObject([{ kind: 'strict', key: 'k7', params: { n: 7 }, state: 'NEW' }]);
    // From the store, as its own client.
    const started = await holdfast(
      'intents',
      'start',
      '--kind',
      'gpu',
      '--key',
      'b',
      '--params',
      '{"x":1}',
      '--json',
    );
    expect(JSON.parse(started.stdout)).toMatchObject({ kind: 'gpu', key: 'b', params: { x: 1 } });
    await begun(2);
    const start = (...args: string[]) => holdfast('intents', 'start', '--kind', ...args);
    const unknown = await start('nope', '--key', 'c');
    expect(unknown).toMatchObject({ code: 78, stdout: '' });
    expect(unknown.stderr).toMatch(/^holdfast: kind is "nope": this kind is not declared here\./);
    const unfit = await start('strict', '--key', 'c', '--params', '{"n":"x"}');
    expect(unfit).toMatchObject({ code: 78, stdout: '' });
    expect(unfit.stderr).toMatch(/do not fit kind 'strict': params\.n: must be a number/);
    expect(await all(client.sessions({ kind: 'strict', key: 'c' }))).toEqual([]);
    const ls = await holdfast('sessions', 'ls', '--kind', 'gpu', '--state', 'running');
    expect(ls.stdout).toMatch(/gpu +b +\{"x":1\}/);
    const stop = await holdfast('intents', 'stop', '--kind', 'gpu', '--key', 'b');
    expect(stop).toMatchObject({ code: 0, stdout: expect.stringMatching(/is stopping/) });
    const bad = await holdfast('intents', 'start', '--kind', 'strict', '--params', '{"n":"x"}');
    expect(bad.code).not.toBe(0);
    expect(bad.stderr).toMatch(/params\.n: must be a number/);
    const stopped = await client.stopKey('gpu', 'a');
    expect(stopped.sessions).toMatchObject([{ kind: 'gpu', key: 'a' }]);
    expect(await ended(client, stopped.sessions[0]?.sessionId ?? '')).toMatchObject({
      reason: 'R_STOPPED',
    });
    await expect(client.stopKey('gpu', 'none')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
