import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort, type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { BIN, cli, privateFolder, type Result, startCli, startProgram } from './support/cli.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';
import { startUp } from './support/instances.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const embedded = () => ({ url: `sqlite:${join(privateFolder(), 'holdfast.db')}` });

describe.concurrent('holdfast up', () => {
  it('P-05 says that the store is down at boot, keeps trying, and polls when it is up', async () => {
    const port = await freePort();
    const at = { url: `redis://:canary@127.0.0.1:${port}` };
    await using up = startUp('ana', { at, config: 'poll: () => 1' });
    await up.says(/is unreachable.* Trying again until the store answers\./);
    await using _late = await startRedis({ port, credentials: { password: 'canary' } });
    await up.says(/^is up: 0 targets for 1 instance$/);
    await using holdfast = await openAt(at);
    await holdfast.targets.add({ id: 'a' });
    const polled = async () => (await holdfast.fleet.results(['a'])).get('a')?.by === up.id;
    await until(polled, { what: 'a result' });
    up.running.signal('SIGTERM');
    expect(await up.running.end()).toMatchObject({ code: 0, stderr: '' });
    expect(up.running.stdout).not.toContain('canary');
  });

  it('E1 says that the store has gone while it runs, and goes on when it is back', async () => {
    await using store = await startRedis();
    await using up = startUp('ana', { at: store, config: 'poll: () => 1' });
    await up.says(/^is up/);
    await store.kill();
    await up.says(/^cannot see the fleet, and tries again/);
    await store.restart();
    await up.says(/^sees the fleet again after/);
  });

  it('is ended by SIGTERM while it still tries to connect', async () => {
    const at = { url: `redis://127.0.0.1:${await freePort()}` };
    await using up = startUp('ana', { at });
    await up.says(/is unreachable/);
    up.running.signal('SIGTERM');
    expect(await up.running.end()).toMatchObject({ code: 0, stderr: '' });
  });

  it('does not wait for a poll that hangs longer than it is told to, and never hands its target over', async () => {
    const at = embedded();
    await using holdfast = await openAt(at);
    await holdfast.targets.addAll([{ id: 'hangs' }, { id: 'fine' }]);
    const config = `poll: ({ id }) => (id === 'hangs' ? new Promise(() => {}) : 1)`;
    await using up = startUp('ana', { at, config, args: ['--stop-within', '500ms'] });
    await up.says(/^took hangs/);
    up.running.signal('SIGINT');
    expect(await up.running.end()).toMatchObject({ code: 0, stderr: '' });
    expect(up.log.at(-1)?.msg).toMatch(/^handed over 2 targets in .*; the leases of 1 expire/);
    const { targets } = await holdfast.fleet.view();
    expect(targets).toMatchObject([
      { target: 'fine', owner: null },
      { target: 'hangs', owner: up.id },
    ]);
  });

  it('ends at once with a second signal', async () => {
    const at = embedded();
    await using holdfast = await openAt(at);
    await holdfast.targets.add({ id: 'hangs' });
    const config = 'poll: () => new Promise(() => {})';
    await using up = startUp('ana', { at, config, args: ['--stop-within', '60s'] });
    await up.says(/^took hangs/);
    up.running.signal('SIGTERM');
    await up.says(/^stops, and hands over 1 target/);
    up.running.signal('SIGTERM');
    expect(await up.running.end()).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('speaks in words on a terminal, says what to try next, and how far handing over is', async () => {
    const at = embedded();
    await using holdfast = await openAt(at);
    await holdfast.targets.addAll([{ id: 'a' }, { id: 'b' }]);
    const config = join(privateFolder(), 'holdfast.config.mjs');
    writeFileSync(config, `export default { poll: () => 1 };`);
    // Without exec some shells stay, hear Ctrl-C too, and end with its number.
    const line = `exec "${process.execPath}" "${BIN}" up --config "${config}"`;
    const options = { at, env: { TERM: 'xterm' } };
    await using up = startProgram('script', ['-qec', line, '/dev/null'], options);
    const isGreeted = () => /Ctrl-C hands its targets over/.test(up.stdout);
    await until(isGreeted, { what: 'the greeting', deadlineMs: 10_000 });
    expect(up.stdout).toMatch(/ took 2 targets: a, b\r\n/);
    expect(up.stdout).toContain('See the owners: holdfast map.');
    expect(up.stdout).toMatch(/The API: (http:\/\/127\.0\.0\.1:\d+), documented at \1\/docs/);
    up.type('\u0003');
    expect(await up.end()).toMatchObject({ code: 0 });
    expect(up.stdout).toMatch(/handing over 2 targets …/);
    expect(up.stdout).toMatch(/handed over 2 targets in \d+ ms\r\n$/);
  });

  it('does not wait for the reader of its log, neither to work nor to end', async () => {
    const at = embedded();
    await using holdfast = await openAt(at);
    const ids = Array.from({ length: 200 }, (_, i) => `device-${i}`);
    await holdfast.targets.addAll(ids.map((id) => ({ id })));
    const config = `poll: () => 'x'.repeat(100), every: '100ms'`;
    await using up = startUp('ana', { at, config, args: ['--log-level', 'debug'] });
    up.running.pause();
    // Two hundred lines ten times a second fill any pipe in no time.
    const last = async () => (await holdfast.fleet.results(['device-0'])).get('device-0')?.at;
    const first = await until(last, { what: 'a poll', deadlineMs: 10_000 });
    const isLater = async () => ((await last()) ?? 0) > first + 1_500;
    await until(isLater, { what: 'polls to go on', deadlineMs: 10_000 });
    up.running.signal('SIGTERM');
    expect(await up.running.exited()).toMatchObject({ code: 0 });
  });

  it('asks this host only where the store is embedded, or where it is told to', async () => {
    const server = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const outcome = async (at: { url: string }, config: string) => {
      await using holdfast = await openAt(at, { prefix: 'http:' });
      if ((await holdfast.targets.get('a')) === null) await holdfast.targets.add({ id: 'a', url });
      await using up = startUp('ana', { at, config, env: { HOLDFAST_PREFIX: 'http:' } });
      const result = async () => {
        const found = (await holdfast.fleet.results(['a'])).get('a');
        return found?.by === up.id && found;
      };
      const found = await until(result, { what: 'a result', deadlineMs: 10_000 });
      up.running.signal('SIGTERM');
      await up.running.end();
      return found;
    };
    const [here, refused] = await Promise.all([outcome(embedded(), ''), outcome(redis, '')]);
    expect(here).toMatchObject({ ok: true, value: { status: 200, size: 2 } });
    expect(refused).toMatchObject({ ok: false, error: expect.stringContaining('loopback') });
    const allowed = await outcome(redis, `http: { allow: ['loopback'] }`);
    expect(allowed).toMatchObject({ ok: true, value: { status: 200 } });
    server.close();
  });
});

it('wrong input is one line with what to do, and nothing happens', async () => {
  const at = embedded();
  // What looks at a store makes none.
  await (await openAt(at)).close();
  const file = (text: string) => startCli(['targets', 'add', '--file', '-'], { at }).end(text);
  const cases: [readonly string[], number, RegExp][] = [
    [['up', '--every', '1ms'], 64, /--every is "1ms": it must be from 100 ms/],
    [['up', '--weight', '0'], 64, /--weight is 0/],
    [['up', '--weight', 'two'], 64, /Give a whole number/],
    [['up', '--ttl', '100ms'], 64, /--ttl is "100ms"/],
    [['up', '--stop-within', 'soon'], 64, /--stop-within is "soon"/],
    [['up', '--log-level', 'loud'], 64, /debug, info, warn, error/],
    [['up', '--store', 'memory:'], 78, /exclude no other process/],
    [['up', '--worker-name', 'a b'], 64, /--worker-name is "a b"/],
    [['up', '--roles', 'api,ape'], 64, /--roles is "api,ape": unknown role/],
    [['up', '--host', '0.0.0.0'], 64, /--host is "0.0.0.0": other hosts could reach it/],
    [['up', '--host', 'nowhere.invalid'], 64, /--host is "nowhere.invalid"/],
    [
      ['up', '--port', '70000'],
      64,
      /--port .*'70000' is invalid. Give a whole number from 0 to 65535/,
    ],
    [['up', '--port', 'any'], 64, /Give a whole number/],
    [['up', '--config', 'no-such-file.mjs'], 78, /could not be loaded/],
    [
      ['targets', 'add'],
      64,
      /needs a URL or a command: holdfast targets add URL, or --command NAME/,
    ],
    [['targets', 'add', 'ftp://u:canary@x/'], 64, /URL is "ftp:\/\/\*{3}@x\/": only http/],
    [['targets', 'add', 'x'], 64, /URL is "x": it is no URL/],
    [['targets', 'add', '--id', 'a b', 'http://x/'], 64, /--id is "a b": an id is/],
    [['targets', 'add', '--id', 'a', 'http://x/', 'http://y/'], 64, /--id names one/],
    [['targets', 'add', '--every', '1ms', 'http://x/'], 64, /--every is "1ms"/],
    [['targets', 'add', '--file', 'a', 'http://x/'], 64, /--file cannot be combined/],
    [['targets', 'add', '--file', 'no-such-file'], 64, /could not be read \(ENOENT\)/],
    [['targets', 'get', '\u001b'], 64, /ID is/],
    [['targets', 'get', 'nothing'], 1, /target 'nothing' does not exist/],
    [['targets', 'pause', 'nothing'], 1, /target 'nothing' does not exist/],
    [['targets', 'lst'], 64, /unknown command 'lst' \(Did you mean ls\?\)/],
    [['drain', 'nobody'], 1, /no instance 'nobody' is alive/],
    [['undrain', 'nobody'], 1, /no instance 'nobody' is alive/],
    [['explain', ''], 64, /TARGET is/],
    [['watch', '--event', 'lease.found'], 64, /--event 'lease.found' is unknown/],
    [['watch', '--since', 'noon'], 64, /--since is "noon"/],
  ];
  const results = await Promise.all(cases.map(([args]) => cli(args, { at })));
  for (const [i, [args, code, message]] of cases.entries()) {
    const { stdout, stderr, ...result } = results[i] as Result;
    expect(`${args}: ${result.code}`).toBe(`${args}: ${code}`);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^holdfast: [ -~…]*\n$/);
    expect(stderr).not.toContain('canary');
    expect(stdout).toBe('');
  }
  const files: [string, RegExp][] = [
    ['{}', /is not a JSON list/],
    ['[1', /is not a JSON list/],
    ['[{"url":"http://x/"},7]', /entry 2: entry: an entry must be a URL or an object/],
    ['[{"url":"http://x/"},{"url":"file:///etc/passwd"}]', /entry 2: url: only http and https/],
    ['[{"id":"{}"}]', /entry 1: id: an id is/],
    ['[{"id":"a","everyMs":-1}]', /entry 1: everyMs/],
  ];
  for (const [text, message] of files) {
    const { code, stderr } = await file(text);
    expect({ text, code }).toEqual({ text, code: 64 });
    expect(stderr).toMatch(message);
  }
  expect(await cli(['targets', 'ls'], { at })).toMatchObject({
    stdout: 'There are no targets. Add one: holdfast targets add URL\n',
  });
});
