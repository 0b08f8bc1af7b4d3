import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HoldfastClient, type RunSession } from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { startUp, type UpInstance } from './support/instances.ts';

leaveNothingBehind();

const SLOW = { timeout: 60_000 };
/** On a machine that does something else, too. */
const START_MS = 20_000;
const TOKEN = 'a-token-of-the-tests';
const env = { HOLDFAST_API_TOKEN: TOKEN };

/** Runs until it is told to end, and says so. */
const PATIENT = `(session, { signal, slot, progress }) => {
  progress({ slot, target: session.target });
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve('told'), { once: true }));
}`;
/** Leases that no busy machine lets run out meanwhile. */
const WORKS = `worker: { ttl: '30s', grace: '500ms' }, resources: { tuners: 2 }`;
const patient = `${WORKS}, pipelines: { live: ${PATIENT} }`;

const file = () => ({ url: `sqlite:${join(privateFolder(), 'holdfast.db')}` });

async function clientOf(up: UpInstance): Promise<HoldfastClient> {
  const { url } = await up.says(/^listens on /, START_MS);
  await up.says(/^is up/, START_MS);
  return new HoldfastClient({ url: String(url), token: TOKEN });
}

async function stopped(up: UpInstance): Promise<void> {
  up.running.signal('SIGTERM');
  expect(await up.running.end()).toMatchObject({ code: 0 });
}

/** A session as the command line shows it. */
async function shown(at: { url: string }, id: string) {
  const { stdout } = await cli(['sessions', 'get', id, '--json'], { at });
  return JSON.parse(stdout);
}

function configFile(config: string): string {
  const path = join(privateFolder(), 'holdfast.config.mjs');
  writeFileSync(path, `export default { ${config} };`);
  return path;
}

async function slots(at: { url: string }, config = WORKS) {
  const { stdout } = await cli(['slots', '--json', '--config', configFile(config)], { at });
  return JSON.parse(stdout) as Record<string, unknown>[];
}

function running(client: HoldfastClient, id: string): Promise<RunSession> {
  return client.waitFor(id, { until: 'RUNNING', timeout: '20s' });
}

describe('holdfast up, with the role worker', () => {
  it(
    'I-08 I-14 I-17 runs what is started by HTTP in a slot, shows how far it is, and ends it when its client stops it',
    SLOW,
    async () => {
      const at = file();
      await using up = startUp('ana', { at, roles: 'worker,api', env, config: patient });
      const client = await clientOf(up);
      const { msg } = await up.says(/^is up/);
      expect(msg).toBe(
        'is up: runs live with a function and vod with the built-in pipeline, on 2 slots of tuners',
      );
      const { sessionId } = await client.start({ serviceRef: 'channel-7' });
      await running(client, sessionId);
      const look = async () => {
        const session = await client.session(sessionId);
        return session !== null && 'progress' in session && session;
      };
      const session = await until(look, { what: 'it to say how far it is', deadlineMs: START_MS });
      expect(session).toMatchObject({
        ...{ state: 'RUNNING', worker: up.id, slot: 'tuner:1', losses: 0 },
        progress: { slot: '1', target: 'channel-7' },
      });
      expect(await slots(at)).toMatchObject([
        { pool: 'tuners', slot: '1', key: 'tuner:1', session: sessionId, worker: up.id },
        { pool: 'tuners', slot: '2', holder: null, session: null, expiresInMs: 0 },
      ]);
      await client.stop(sessionId);
      await client.waitFor(sessionId, { until: 'ENDED', timeout: '20s' });
      expect(await shown(at, sessionId)).toMatchObject({
        ...{ state: 'ENDED', reason: 'R_STOPPED', outcome: 'STOPPED' },
        detail: { result: 'told' },
      });
      expect((await slots(at)).map(({ holder }) => holder)).toEqual([null, null]);
      await stopped(up);
    },
  );

  it('I-17 runs a command that is told of its session, and keeps how it ended', SLOW, async () => {
    const at = file();
    const gate = join(privateFolder(), 'gate');
    const said = 'echo "::progress $HOLDFAST_SLOT of $HOLDFAST_SESSION_TARGET"; echo no signal >&2';
    const waits = 'while [ ! -e "$GATE" ]; do sleep 0.1; done; exit 3';
    const command = JSON.stringify(['sh', '-c', `${said}; ${waits}`]);
    const pipelines = `{ live: { command: ${command}, env: { GATE: '${gate}' } } }`;
    const config = `${WORKS}, pipelines: ${pipelines}`;
    await using up = startUp('ana', { at, roles: 'worker,api', env, config });
    const client = await clientOf(up);
    const { sessionId } = await client.start({ serviceRef: 'channel-7' });
    await running(client, sessionId);
    const hasSaid = async () => (await shown(at, sessionId)).progress === '1 of channel-7';
    await until(hasSaid, { what: 'it to say how far it is', deadlineMs: START_MS });
    expect(await shown(at, sessionId)).toMatchObject({ group: { group: expect.any(Number) } });
    writeFileSync(gate, '');
    const ended = await client.waitFor(sessionId, { until: 'ENDED', timeout: '20s' });
    expect(ended).toMatchObject({
      ...{ reason: 'R_PIPELINE_FAILED', outcome: 'FAILED', detail: { code: 3 } },
    });
    const { stdout } = await cli(['sessions', 'get', sessionId], { at });
    expect(stdout).toMatch(/^exit code +3$/m);
    expect(stdout).toMatch(/^last lines +.*no signal/ms);
    await stopped(up);
  });

  it('I-09 I-10 rejects what finds its channel taken, and what finds no slot', SLOW, async () => {
    const at = file();
    await using up = startUp('ana', { at, roles: 'worker,api', env, config: patient });
    const client = await clientOf(up);
    const ended = async (serviceRef: string, profile: string) => {
      const { sessionId } = await client.start({ serviceRef, profile });
      return client.waitFor(sessionId, { until: 'ENDED', timeout: '20s' });
    };
    for (const serviceRef of ['a', 'b'])
      await running(client, (await client.start({ serviceRef })).sessionId);
    expect(await ended('a', 'hd')).toMatchObject({ reason: 'R_LEASE_BUSY' });
    expect(await ended('c', 'hd')).toMatchObject({ reason: 'R_NO_TUNER' });
    await stopped(up);
  });

  it(
    'leaves what it runs to other workers when it is told to stop, and these go on with it at once',
    SLOW,
    async () => {
      const at = file();
      await using ana = startUp('ana', { at, roles: 'worker,api', env, config: patient });
      const client = await clientOf(ana);
      const { sessionId } = await client.start({ serviceRef: 'channel-7' });
      await running(client, sessionId);
      await using ben = startUp('ben', { at, roles: 'worker', config: patient });
      await ben.says(/^is up/, START_MS);
      await stopped(ana);
      expect(ana.log.map(({ msg }) => msg)).toEqual(
        expect.arrayContaining([
          'stops, and hands 1 session to other workers',
          expect.stringMatching(/^ended 1 session in \d+ ms$/),
        ]),
      );
      const look = async () => (await shown(at, sessionId)).worker === ben.id;
      await until(look, { what: 'the other worker to have it', deadlineMs: 10_000 });
      expect(await shown(at, sessionId)).toMatchObject({ state: 'RUNNING', losses: 0 });
      await stopped(ben);
    },
  );

  it('ends at once when it is told a second time, whatever does not end', SLOW, async () => {
    const at = file();
    const config = `${WORKS}, pipelines: { live: () => new Promise(() => {}) }`;
    await using up = startUp('ana', { at, roles: 'worker,api', env, config });
    const client = await clientOf(up);
    await running(client, (await client.start({ serviceRef: 'a' })).sessionId);
    up.running.signal('SIGINT');
    await up.says(/^stops, and hands 1 session/);
    up.running.signal('SIGINT');
    expect(await up.running.end()).toMatchObject({ signal: 'SIGINT' });
  });

  it('is done in time although what it runs does not end, and says so', SLOW, async () => {
    const at = file();
    const config = `${WORKS}, pipelines: { live: () => new Promise(() => {}) }`;
    const args = ['--stop-within', '700ms'];
    await using up = startUp('ana', { at, roles: 'worker,api', env, config, args });
    const client = await clientOf(up);
    await running(client, (await client.start({ serviceRef: 'a' })).sessionId);
    await stopped(up);
    expect(up.log.map(({ msg }) => msg)).toContainEqual(
      expect.stringMatching(/did not end, and their leases expire$/),
    );
    expect((await slots(at)).map(({ holder }) => holder)).not.toEqual([null, null]);
  });

  it('I-12 is refused under the name of a worker that lives, with what to do', SLOW, async () => {
    const at = file();
    const named = ['--worker-name', 'box-1'];
    await using ana = startUp('ana', { at, roles: 'worker', config: WORKS, args: named });
    await ana.says(/^is up/, START_MS);
    await using ben = startUp('ben', {
      ...{ at, roles: 'worker', config: WORKS },
      env: { HOLDFAST_WORKER_NAME: 'box-1' },
    });
    const { code, stderr } = await ben.running.end();
    expect(code).toBe(78);
    expect(stderr).toMatch(
      /^holdfast: a worker called 'box-1' exists already: .*a name of its own/,
    );
    expect(ben.log.some(({ msg }) => msg.startsWith('is up'))).toBe(false);
    await stopped(ana);
  });
});

it('what makes no sense for a worker is one line, before the store is asked', SLOW, async () => {
  // Nobody listens there: whoever asked it first would try until the test is over.
  const at = { url: 'redis://127.0.0.1:1' };
  const cases: [string, RegExp, Record<string, string>?][] = [
    [`worker: { slots: 4 }`, /worker\.slots is .*Known options: name, kinds, starts, ttl, grace/],
    [`worker: { starts: 0 }`, /worker\.starts is 0: it must be a whole number from 1/],
    [`worker: { ttl: 'long' }`, /worker\.ttl is "long"/],
    [`worker: { ttl: '2s', grace: '5s' }`, /ttl/],
    [`worker: { name: 'a b' }`, /worker\.name is "a b"/],
    ['', /HOLDFAST_WORKER_NAME is "a b"/, { HOLDFAST_WORKER_NAME: 'a b' }],
    [`resources: { tuners: 0 }`, /slots is 0: a pool has 1 to 10000 slots/],
    [`resources: { gpus: 2 }, pipelines: { live: () => 1 }`, /no such pool.*gpus/],
    [`pipelines: { live: { command: 'ffmpeg -i' } }`, /pipelines\.live is/],
  ];
  for (const [config, message, more = {}] of cases) {
    await using up = startUp('ana', { at, roles: 'worker', config, env: more });
    const { code, stderr } = await up.running.end();
    expect({ config, code, lines: stderr.split('\n').length, stderr }).toEqual({
      ...{ config, code: 78, lines: 2 },
      stderr: expect.stringMatching(message),
    });
  }
});
