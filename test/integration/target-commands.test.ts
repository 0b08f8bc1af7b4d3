import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { OperatorClient } from '../../src/client/index.ts';
import { open } from '../../src/holdfast.ts';
import { until } from '../support/until.ts';
import {
  areRunning,
  type CommandGround,
  commandGround,
  isAlive,
  overlapsIn,
  TTL_MS,
} from './support/command-ground.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { startUp } from './support/instances.ts';

leaveNothingBehind();
vi.setConfig({ testTimeout: 90_000 });

const START_MS = 20_000;
const listenAndSync = (script: string) => ({
  commands: { listen: [script, 'listening'], sync: [script, 'syncing'] },
});

/** `l1` and `l2` listen, `s1` and `s2` sync. */
async function addFour({ run }: CommandGround): Promise<void> {
  for (const [id, command] of Object.entries({
    l1: 'listen',
    l2: 'listen',
    s1: 'sync',
    s2: 'sync',
  })) {
    const data = JSON.stringify({ account: `of ${id}; $(exit 1)` });
    const added = await run('targets', 'add', '--id', id, '--command', command, '--data', data);
    expect(added).toMatchObject({ code: 0, stderr: '' });
  }
}

/** Waits until each of the targets has one command, and never more than one. */
function untilRunning({ alive }: CommandGround, count: number, isNew = (_: number) => true) {
  const seen: string[] = [];
  const areThere = () => {
    const now = alive();
    seen.push(...overlapsIn(now));
    return areRunning(now, count) && now.every(({ pid }) => isNew(pid));
  };
  const what = `${count} commands`;
  return until(areThere, { what, deadlineMs: START_MS }).then(() => expect(seen).toEqual([]));
}

describe('holdfast up with a command per target', () => {
  it('B-04 each target has its own command and data; after kill -9 its whole group is dead before another instance starts it', async () => {
    const ground = commandGround();
    const { records, alive, start, run } = ground;
    await addFour(ground);
    const first = start(listenAndSync);
    await untilRunning(ground, 4);
    for (const { target, word, json } of records()) {
      expect(word).toBe(target.startsWith('l') ? 'listening' : 'syncing');
      expect(json).toMatchObject({ id: target, data: { account: `of ${target}; $(exit 1)` } });
    }
    const before = records();
    const fences = new Map(before.map(({ target, fence }) => [target, fence]));
    const second = start(listenAndSync);
    await until(async () => (await ownersOf(ground)).size === 2, {
      what: 'both',
      deadlineMs: START_MS,
    });
    await untilRunning(ground, 4);
    const old = new Set(records().map(({ pid }) => pid));
    const dying = alive();
    first.signal('SIGKILL');
    const isGone = () => dying.filter(({ pid }) => !isAlive(pid)).length >= 2;
    await until(isGone, { what: 'the commands of the dead instance to end', deadlineMs: TTL_MS });
    // Two were at the other instance all the time; the two of the dead one are started again.
    const kept = new Set(alive().map(({ pid }) => pid));
    await untilRunning(ground, 4, (pid) => kept.has(pid) || !old.has(pid));
    for (const { target, fence, word } of alive()) {
      expect(fence).toBeGreaterThanOrEqual(fences.get(target) ?? 0);
      expect(word).toBe(target.startsWith('l') ? 'listening' : 'syncing');
    }
    const shown = await run('targets', 'get', 'l1', '--json');
    expect(JSON.parse(shown.stdout)).toMatchObject({ command: 'listen', state: 'running' });
    second.signal('SIGTERM');
    expect(await second.end()).toMatchObject({ code: 0 });
    expect(alive()).toEqual([]);
  });

  it('B-04 B-07 an instance without the command owns no such target, and a drained one hands over to one that has it', async () => {
    const ground = commandGround();
    const { alive, start, run } = ground;
    await addFour(ground);
    const listener = start((script) => ({ commands: { listen: [script, 'listening'] } }));
    await untilRunning(ground, 2);
    expect(
      alive()
        .map(({ target }) => target)
        .sort(),
    ).toEqual(['l1', 'l2']);
    const why = await run('explain', 's1');
    expect(why.stdout).toContain("no instance has its command 'sync'");
    const both = start(listenAndSync);
    await untilRunning(ground, 4);
    const owners = await ownersOf(ground);
    const [able = ''] = [...owners].filter(([, targets]) => targets.includes('s1'))[0] ?? [];
    expect(owners.get(able)).toEqual(expect.arrayContaining(['s1', 's2']));
    const [other = ''] = [...owners.keys()].filter((owner) => owner !== able);
    const refused = await run('transfer', 's1', other);
    expect(refused.stderr).toContain('it does not have the command of this target');
    expect((await run('drain', other)).code).toBe(0);
    const haveMoved = async () => ((await ownersOf(ground)).get(able) ?? []).length === 4;
    await until(haveMoved, { what: 'all at one instance', deadlineMs: START_MS });
    await untilRunning(ground, 4);
    for (const one of [listener, both]) one.signal('SIGTERM');
    await Promise.all([listener.end(), both.end()]);
    expect(alive()).toEqual([]);
  });

  it('B-04 a command that exits is started again after a pause that grows, and the others run on', async () => {
    const ground = commandGround();
    const { records, alive, start, run } = ground;
    await run('targets', 'add', '--id', 'bad', '--command', 'broken');
    await run('targets', 'add', '--id', 'good', '--command', 'listen');
    const instance = start((script) => ({
      commands: { broken: [script, 'failing'], listen: [script, 'listening'] },
    }));
    const runsOf = (id: string) => records().filter(({ target }) => target === id).length;
    await until(() => runsOf('bad') >= 4, { what: 'four runs', deadlineMs: START_MS });
    expect(runsOf('good')).toBe(1);
    const isShown = async () => {
      const { result } = JSON.parse((await run('targets', 'get', 'bad', '--json')).stdout);
      return result?.state === 'waiting' && result.failures >= 3 ? result : null;
    };
    const result = await until(isShown, { what: 'the failures', deadlineMs: START_MS });
    expect(result).toMatchObject({ ok: false, error: expect.stringContaining('3') });
    instance.signal('SIGTERM');
    await instance.end();
    expect(alive()).toEqual([]);
  });

  it('B-04 the command line and HTTP refuse a name that no instance has, and a program, and write nothing', async () => {
    const ground = commandGround();
    const { url, run } = ground;
    await using up = startUp('ana', {
      at: { url },
      roles: 'api,poller',
      config: `runner: { commands: { listen: ['sleep', '1000'] } }`,
      args: ['--port', '0'],
      env: { HOLDFAST_API_TOKEN: 'a-token-of-the-tests' },
    });
    const listens = await up.says(/^listens on /, START_MS);
    await up.says(/^is up/, START_MS);
    const typo = await run('targets', 'add', '--id', 'a', '--command', 'lisen');
    expect(typo).toMatchObject({ code: 64, stdout: '' });
    expect(typo.stderr).toMatch(
      /--command.*lisen.*no running instance has a command of this name. They have listen\./s,
    );
    const program = await run('targets', 'add', '--id', 'a', '--command', './evil.sh');
    expect(program.stderr).toMatch(/--command.*evil.*the name of a command is/s);
    const list = await run('targets', 'add', '--id', 'a', '--command', 'listen', '--data', '[1]');
    expect(list.stderr).toMatch(/--data.*it must be a JSON object/s);
    const operator = new OperatorClient({
      url: String(listens.url),
      token: 'a-token-of-the-tests',
    });
    const problem = (rule: RegExp) => ({
      code: 'INVALID_REQUEST',
      errors: [{ field: 'command', rule: expect.stringMatching(rule) }],
    });
    await expect(operator.targets.add({ id: 'a', command: 'lisen' })).rejects.toMatchObject(
      problem(/They have listen/),
    );
    await expect(operator.targets.add({ id: 'a', command: 'sh -c id' })).rejects.toMatchObject(
      problem(/the name of a command is/),
    );
    const holdfast = await open(url, { quarantine: 'off' });
    expect((await holdfast.targets.list()).targets).toEqual([]);
    const added = await operator.targets.add({ id: 'a', command: 'listen', data: { n: 1 } });
    expect(added).toMatchObject({ id: 'a', command: 'listen' });
    const isRunning = async () => (await operator.targets.get('a')).lastResult?.state === 'running';
    await until(isRunning, { what: 'its command', deadlineMs: START_MS });
    await expect(operator.targets.change('a', { command: 'lisen' })).rejects.toMatchObject(
      problem(/They have listen/),
    );
    await holdfast.close();
  });

  it('B-04 targets change sets and clears fields, and refuses what does not fit', async () => {
    const { run } = commandGround();
    const address = 'http://127.0.0.1:9/';
    await run('targets', 'add', '--id', 'a', '--timeout', '5s', '--command', 'sync', address);
    const cleared = await run('targets', 'change', 'a', '--clear', 'timeout,command');
    expect(cleared).toMatchObject({ code: 0, stdout: 'Changed timeout, command of a.\n' });
    const json = JSON.parse(
      (await run('targets', 'change', 'a', '--every', '1m', '--json')).stdout,
    );
    expect(json).toMatchObject({ id: 'a', changed: true, target: { everyMs: 60_000 } });
    for (const field of ['timeoutMs', 'command']) expect(json.target).not.toHaveProperty(field);
    for (const [flags, complaint] of [
      [['--clear', 'id'], /--clear is "id".*url, every, timeout, command, data/],
      [['--every', '1m', '--clear', 'every'], /--clear every cannot be combined with --every/],
      [['--every', '1ms'], /--every.*1ms.*100 ms to 24 h/s],
      [[], /targets change needs a field/],
    ] as const) {
      const refused = await run('targets', 'change', 'a', ...flags);
      expect(refused).toMatchObject({ code: 64, stdout: '' });
      expect(refused.stderr).toMatch(complaint);
    }
    const none = await run('targets', 'change', 'none', '--every', '1m');
    expect(none).toMatchObject({ code: 1, stdout: '' });
    const shown = JSON.parse((await run('targets', 'get', 'a', '--json')).stdout);
    expect(shown).toMatchObject({ revision: 3, url: address, everyMs: 60_000 });
  });

  it('B-04 targets add --timeout is validated, shown, and ends a poll that takes longer', async () => {
    const { url, run } = commandGround();
    const server = createServer(() => {}).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const refused = await run('targets', 'add', '--timeout', '1ms', address);
    expect(refused).toMatchObject({ code: 64, stdout: '' });
    expect(refused.stderr).toMatch(/--timeout.*1ms.*a poll may take from 100 ms to 24 h/s);
    await run('targets', 'add', '--id', 'slow', '--timeout', '300ms', address);
    expect((await run('targets', 'get', 'slow')).stdout).toMatch(/^timeout +300 ms$/m);
    await using _ = startUp('ana', { at: { url }, config: `http: { allow: ['loopback'] }` });
    const isOver = async () => {
      const { result } = JSON.parse((await run('targets', 'get', 'slow', '--json')).stdout);
      return result?.error?.includes('took longer than 300 ms') ?? false;
    };
    await until(isOver, { what: 'the timeout', deadlineMs: START_MS });
    server.closeAllConnections();
    server.close();
  });
});

/** The targets of each owner. */
async function ownersOf({ run }: CommandGround): Promise<Map<string, string[]>> {
  const rows: { id: string; owner: string | null }[] = JSON.parse(
    (await run('targets', 'ls', '--json')).stdout,
  );
  const owners = new Map<string, string[]>();
  for (const { id, owner } of rows)
    if (owner !== null) owners.set(owner, [...(owners.get(owner) ?? []), id]);
  return owners;
}
