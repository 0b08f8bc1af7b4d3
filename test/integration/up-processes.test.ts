import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HoldfastClient } from '../../src/client/index.ts';
import { statOf } from '../../src/worker/supervisor/proc.ts';
import { until } from '../support/until.ts';
import { childrenOf, cli, privateFolder } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { startUp, type UpInstance } from './support/instances.ts';

leaveNothingBehind();

const SLOW = { timeout: 120_000 };
/** On a machine that does something else, too. */
const START_MS = 40_000;
const TOKEN = 'a-token-of-the-tests';
const env = { HOLDFAST_API_TOKEN: TOKEN };

const file = () => ({ url: `sqlite:${join(privateFolder(), 'holdfast.db')}` });
const pidsOf = ({ running }: UpInstance) => childrenOf(running.pid).map(({ pid }) => pid);

/** The address of the API, when so many processes serve it. */
async function urlOf(up: UpInstance, processes: number): Promise<string> {
  const ready = () => up.log.filter(({ msg }) => msg === 'is up').length >= processes;
  await until(ready, { what: `${processes} processes that are up`, deadlineMs: START_MS });
  return String(up.log.find(({ msg }) => msg.startsWith('listens on '))?.url);
}

/** Which process answers. Each request has a connection of its own. */
async function answeredBy(url: string): Promise<string> {
  const headers = { Authorization: `Bearer ${TOKEN}`, Connection: 'close' };
  const text = await (await fetch(`${url}/metrics`, { headers })).text();
  return /holdfast_build_info\{[^}]*process="(\d+)"/.exec(text)?.[1] ?? 'none';
}

async function untilAllAnswer(url: string, all: readonly string[]): Promise<void> {
  const seen = new Set<string>();
  const what = `answers of ${all.join(' and ')}`;
  await until(
    async () => {
      const by = await answeredBy(url).catch(() => null);
      if (by !== null) seen.add(by);
      return all.every((each) => seen.has(each));
    },
    { what, deadlineMs: START_MS },
  );
}

it(
  'I-01 up --processes has all of them answer on one port, replaces one that is killed, and stops',
  SLOW,
  async () => {
    const args = ['--processes', '2', '--port', '0'];
    await using up = startUp('ana', { at: file(), roles: 'api', env, args });
    const url = await urlOf(up, 2);
    await untilAllAnswer(url, ['1', '2']);
    const client = new HoldfastClient({ url, token: TOKEN });
    const starts = Array.from({ length: 8 }, () => client.start({ serviceRef: 'channel-7' }));
    const ids = new Set((await Promise.all(starts)).map(({ sessionId }) => sessionId));
    expect(ids.size).toBe(1);

    const [victim = 0, other = 0] = pidsOf(up);
    process.kill(victim, 'SIGKILL');
    const ended = await up.says(/^process \d ended by SIGKILL after /, START_MS);
    expect(ended).toMatchObject({ level: 'warn', signal: 'SIGKILL', code: null });
    await urlOf(up, 3);
    await untilAllAnswer(url, ['1', '2']);
    expect(pidsOf(up)).toContain(other);
    expect(pidsOf(up)).toHaveLength(2);

    const pids = pidsOf(up);
    up.running.signal('SIGTERM');
    expect(await up.running.end()).toMatchObject({ code: 0, stderr: '' });
    expect(up.log.filter(({ msg }) => /^stopped in /.test(msg))).toHaveLength(2);
    expect(pids.filter((pid) => statOf(pid) !== null)).toEqual([]);
  },
);

it('I-01 up --processes leaves no process behind if it is killed with -9', SLOW, async () => {
  const args = ['--processes', '2', '--port', '0'];
  await using up = startUp('ana', { at: file(), roles: 'api', env, args });
  const url = await urlOf(up, 2);
  const pids = pidsOf(up);
  expect(pids).toHaveLength(2);
  up.running.signal('SIGKILL');
  const gone = () => pids.every((pid) => statOf(pid)?.isDead !== false);
  await until(gone, { what: 'the end of its processes', deadlineMs: START_MS });
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

it(
  'I-01 up --processes refuses other roles, a token of its own, and a port that is taken',
  SLOW,
  async () => {
    const at = file();
    const two = ['up', '--processes', '2'];
    const roles = await cli(two, { at, env });
    expect(roles).toMatchObject({ code: 64, stdout: '' });
    expect(roles.stderr).toMatch(
      /^holdfast: --processes is 2: only the role api can .* Add --roles api/,
    );
    const token = await cli([...two, '--roles', 'api'], { at });
    expect(token).toMatchObject({ code: 64, stdout: '' });
    expect(token.stderr).toContain('Set HOLDFAST_API_TOKEN');
    const server = createServer().listen(0, '127.0.0.1');
    const { port } = await new Promise<AddressInfo>((resolve) =>
      server.once('listening', () => resolve(server.address() as AddressInfo)),
    );
    const taken = await cli([...two, '--roles', 'api', '--port', String(port)], { at, env });
    server.close();
    expect(taken.code).toBe(78);
    expect(taken.stderr).toContain(`port ${port} of 127.0.0.1 is used by another program`);
  },
);
