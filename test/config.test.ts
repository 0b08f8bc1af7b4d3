import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../src/cli/settings.ts';
import { defineConfig } from '../src/config.ts';
import { checkConfig } from '../src/config-schema.ts';
import { open } from '../src/holdfast.ts';
import { type AppOptions, createApp } from '../src/server/app.ts';
import { FakeClock } from '../testing/fakes/fake-clock.ts';

const LOGIN = { username: 'app', password: 'canary-canary' };

describe('a configuration', () => {
  it('is given back as it was', () => {
    const config = defineConfig({
      store: 'sqlite:x.db',
      retention: { sessions: '1h', deadLetters: '30d', history: 60_000 },
      resources: { tuners: 4, gpus: ['a', 'b'], seats: { slots: 3, wait: '5s', key: 'seat' } },
      pipelines: { live: { command: ['ffmpeg', '-i'] }, vod: async () => 7 },
      worker: { name: 'box-1', starts: 8, ttl: '10s', grace: '1s' },
      prefix: 'app:',
      quarantine: 'on',
      maxTtl: { lease: '2m' },
      redis: {
        natMap: { '10.0.0.5:6379': { host: 'b', port: 1 } },
        credentials: async () => LOGIN,
      },
      sessionIds: 'uuid',
      intents: { apiLeases: 'off' },
      roles: ['api'],
      name: 'api',
      weight: 2,
      every: 5_000,
      ttl: '10s',
      timeout: '1s',
      concurrency: 8,
      maxBackoff: '5m',
      results: 'off',
      discovery: 'off',
      http: { allow: ['loopback'], maxBytes: 1 },
      poll: async () => 1,
      api: {
        host: '0.0.0.0',
        port: 4747,
        tokens: [{ id: 'a', token: 'canary-canary-canary', scope: 'v3:read' }],
        lan: { allow: ['10.0.0.0/8'], trustedProxies: [] },
        hosts: ['holdfast.internal'],
        limits: { inFlight: 10, rate: { requestsPerSecond: 0.5, burst: 1 } },
        events: { clients: 1, clientsPerToken: 1, queuedBytes: 1_024 },
        metrics: 'open',
        bodyTimeout: '1s',
        handlerTimeout: '1s',
        headersTimeout: '1s',
        requestTimeout: '2s',
        idleTimeout: '1s',
        maxConnections: 10,
      },
    });
    expect(checkConfig(config)).toBe(config);
    const run = { pipelines: { live: { run: () => {}, resource: null } } };
    expect(checkConfig(run)).toBe(run);
    const runner = {
      runner: { command: ['./x'], cwd: '/', env: { A: 'b' }, grace: '1s', backoff: '1s..1m' },
    };
    expect(checkConfig(runner)).toBe(runner);
    const named = { runner: { commands: { a: ['./a'], b: ['./b', '-v'] } } };
    expect(checkConfig(named)).toBe(named);
    const { stuckAfter, onStuck, maxHold } = { stuckAfter: 1, onStuck: 'restart', maxHold: '6h' };
    const task = { runner: { run: () => {}, stuckAfter, onStuck, maxHold } };
    expect(checkConfig(task)).toBe(task);
    expect(checkConfig({})).toEqual({});
  });

  it.each([
    [undefined, 'the default export', /export default defineConfig/],
    [null, 'the default export', /it must be an object/],
    [[], 'the default export', /it must be an object/],
    [Promise.resolve({}), 'the default export', /is a promise.*export default await/],
    [new Map(), 'the default export', /it must be an object/],
    [() => ({}), 'the default export', /it must be an object/],
    [{ tuners: 4 }, 'tuners', /Known options: store/],
    [{ store: 1 }, 'store', /it must be text/],
    [{ quarantine: 'maybe' }, 'quarantine', /'on' or 'off'/],
    [{ redis: [] }, 'redis', /it must be an object/],
    [{ redis: { password: 'canary' } }, 'redis.password', /Known options: credentials/],
    [{ redis: { credentials: 'canary' } }, 'redis.credentials', /it must be a function that/],
    [{ redis: { natMap: 'a:1' } }, 'redis.natMap', /an object such as/],
    [{ redis: { natMap: { a: {} } } }, 'redis.natMap', /the host:port that a server announces/],
    [{ redis: { natMap: { 'a:1': { host: 'b', port: 0 } } } }, 'redis.natMap.a:1', /1 to 65535/],
    [{ maxTtl: '1ms' }, 'maxTtl', /from 600 ms/],
    [{ maxTtl: { leese: '1m' } }, 'maxTtl.leese', /there are lease, poll, workflow/],
    [{ every: 'often' }, 'every', /'30s'/],
    [{ discovery: true }, 'discovery', /or 'off'/],
    [{ http: { allow: 'loopback' } }, 'http.allow', /it must be a list of/],
    [{ poll: 'fetch' }, 'poll', /it must be a function/],
    [{ maxBackoff: 'never' }, 'maxBackoff', /or 'off'/],
    [{ runner: {} }, 'runner', /either run, a function, or command/],
    [{ runner: { run: () => {}, command: ['a'] } }, 'runner', /either run, a function, or command/],
    [{ runner: { run: 'x' } }, 'runner.run', /it must be a function/],
    [{ runner: { commands: ['a'] } }, 'runner.commands', /it must be an object/],
    [{ runner: { commands: { a: 'sh -c x' } } }, 'runner.commands.a', /it must be a list of text/],
    [
      { runner: { run: () => {}, command: ['a'], commands: { b: ['b'] } } },
      'runner',
      /either run, a function, or command/,
    ],
    [{ runner: { command: 'sh -c x' } }, 'runner.command', /it must be a list of text/],
    [{ runner: { command: ['a'], onStuck: 'kill' } }, 'runner.onStuck', /'report' or 'restart'/],
    [{ runner: { command: ['a'], maxHold: -1 } }, 'runner.maxHold', /it must be milliseconds/],
    [{ runner: { command: ['a'], shell: true } }, 'runner.shell', /unknown option/],
    [{ roles: ['apy'] }, 'roles', /it must be a list of api, poller, worker/],
    [{ intents: { secret: 'canary' } }, 'intents.secret', /HOLDFAST_IDEM_SECRET/],
    [{ api: { tokens: {} } }, 'api.tokens', /it must be a list/],
    [{ api: { lan: null } }, 'api.lan', /it must be an object/],
    [{ api: { lan: {} } }, 'api.lan.allow', /it is required/],
    [{ api: { limits: null } }, 'api.limits', /it must be an object/],
    [{ api: { limits: { rate: {} } } }, 'api.limits.rate.requestsPerSecond', /it is required/],
    [{ api: { events: { clients: 'x' } } }, 'api.events.clients', /whole number/],
    [{ api: { events: { queuedBytes: '1MB' } } }, 'api.events.queuedBytes', /whole number/],
    [{ api: { metrics: 'public' } }, 'api.metrics', /'open' or 'token'/],
    [{ api: { port: '80' } }, 'api.port', /from 0 to 65535/],
    [{ api: { token: 'canary' } }, 'api.token', /Known options: host, port/],
    [{ worker: 'box-1' }, 'worker', /it must be an object/],
    [{ worker: { slots: 4 } }, 'worker.slots', /Known options: name, kinds, starts, ttl, grace/],
    [{ retention: { letters: '1h' } }, 'retention.letters', /Known options: sessions, deadLetters/],
    [{ resources: ['a'] }, 'resources', /it must be an object/],
    [{ resources: { tuners: '4' } }, 'resources.tuners', /it must be a number of slots/],
    [{ resources: { tuners: [1, 2] } }, 'resources.tuners', /a list of their names/],
    [
      { resources: { tuners: { count: 4 } } },
      'resources.tuners.count',
      /Known options: slots, wait/,
    ],
    [{ pipelines: () => {} }, 'pipelines', /it must be an object/],
    [{ pipelines: { poll: () => {} } }, 'pipelines.poll', /Known options: live, vod/],
    [{ pipelines: { live: 'ffmpeg' } }, 'pipelines.live', /it must be an object/],
    [{ pipelines: { live: { command: 'ffmpeg -i' } } }, 'pipelines.live', /\['program'/],
    [{ pipelines: { live: { command: [] } } }, 'pipelines.live', /\['program'/],
    [{ pipelines: { live: {} } }, 'pipelines.live', /it must be a function, /],
    [
      { pipelines: { live: { command: ['a'], run: () => {} } } },
      'pipelines.live',
      /it must be a function, /,
    ],
    [
      { pipelines: { live: { command: ['a'], shell: true } } },
      'pipelines.live.shell',
      /unknown option/,
    ],
  ])('is not %j', (config, field, rule) => {
    expect(() => checkConfig(config)).toThrow(expect.objectContaining({ field }));
    expect(() => checkConfig(config)).toThrow(rule);
  });
});

it('I-19 a configuration that is refused never shows a secret', () => {
  const wrong = [
    { api: { tokens: 'canary' } },
    { api: { token: 'canary' } },
    { intents: { secret: 'canary' } },
    { secret: 'canary' },
  ];
  for (const config of wrong) {
    expect(() => checkConfig(config)).toThrow(/^(?!.*canary)/);
    expect(() => checkConfig(config)).toThrow(expect.not.objectContaining({ value: 'canary' }));
  }
});

it('what a program tells the server is held to the same rules', async () => {
  await using holdfast = await open('memory:');
  const wrong = [
    ['events', { clients: 'x' }],
    ['events', { queuedBytes: '1MB' }],
    ['metrics', 'public'],
    ['limits', null],
    ['lan', null],
    ['tokens', {}],
  ] as const;
  for (const [name, value] of wrong) {
    const options = { [name]: value } as AppOptions;
    expect(() => createApp(holdfast, options)).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', field: expect.stringMatching(name) }),
    );
  }
});

describe('the file of a configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let files = 0;
  const load = (text: string, clock = new FakeClock()) => {
    const path = join(folder, `config-${files++}.mjs`);
    writeFileSync(path, text);
    return loadConfig(path, clock);
  };

  it('is loaded, and may wait for what it says', async () => {
    expect(await load('export default await Promise.resolve({ weight: 2 });')).toEqual({
      weight: 2,
    });
  });

  it.each([
    ['export default Promise.resolve({ store: "redis://x" });', /default export is a promise/],
    ['export default [];', /default export is an array/],
    ['export const config = {};', /default export is undefined/],
    ['export default { api: { limits: null } };', /api\.limits is null: it must be an object/],
    ['throw new Error("no");', /it could not be loaded: no/],
  ])('is refused with 78: %s', async (text, why) => {
    const error: unknown = await load(text).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', exit: 78 });
    expect((error as Error).message).toMatch(why);
  });

  it('that never ends to load is refused with 78, after 10 s', async () => {
    const clock = new FakeClock();
    const loading = load('await new Promise(() => {}); export default {};', clock);
    const outcome = loading.catch((thrown: unknown) => thrown);
    await clock.advance(10_000);
    expect(await outcome).toMatchObject({
      ...{ code: 'CONFIG_INVALID', exit: 78, message: expect.stringContaining('within 10 s') },
    });
  });
});
