import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { StagePicture } from '../../src/server/demo-stage.ts';
import { atExit } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import {
  type CliOptions,
  cli,
  privateFolder,
  type Running,
  startCli,
  startProgram,
} from './support/cli.ts';
import { openAt } from './support/holdfasts.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));
/** Against what hangs. How long five processes take to start is the machine's business. */
const DEADLINE_MS = 30_000;
/** A story has several chapters, and each has a deadline of its own. */
const TIMEOUT_MS = 120_000;
/** What somebody has set up for a store that means it. */
const SERIOUS = {
  HOLDFAST_STORE: 'redis://127.0.0.1:1',
  HOLDFAST_API_TOKEN: 'of-somebody-who-means-it-0123456789abcdef',
};

interface Facts {
  readonly url: string;
  readonly page: string;
  readonly token: string;
  readonly store: string;
  readonly prefix: string;
  readonly instances: readonly { readonly name: string; readonly pid: number }[];
}

/** A `holdfast demo` that runs, with a folder of its own for what is temporary. */
class Demo {
  readonly running: Running;
  readonly folder: string;
  facts: Facts = { url: '', page: '', token: '', store: '', prefix: '', instances: [] };

  private constructor(running: Running, folder: string) {
    this.running = running;
    this.folder = folder;
  }

  static async start({
    args = [],
    env = {},
    folder = privateFolder(),
  }: {
    args?: readonly string[];
    env?: CliOptions['env'];
    folder?: string;
  } = {}): Promise<Demo> {
    const running = startCli(['demo', '--json', ...args], { env: { ...env, TMPDIR: folder } });
    const demo = new Demo(running, folder);
    atExit(() => demo.killAll());
    // What it has said by the deadline is the cause of the error then.
    const line = () => {
      const [found] = /^\{.*\}$/m.exec(running.stdout) ?? [];
      if (found !== undefined) return found;
      throw new Error(`it has said: ${running.stdout}${running.stderr}`);
    };
    const found = await until(line, { what: 'the demo to be up', deadlineMs: DEADLINE_MS });
    demo.facts = JSON.parse(found) as Facts;
    return demo;
  }

  async ask<T>(path: string, method: 'GET' | 'POST' = 'GET'): Promise<{ status: number; body: T }> {
    const headers = { authorization: `Bearer ${this.facts.token}` };
    const response = await fetch(`${this.facts.url}/api/v3/${path}`, { method, headers });
    return { status: response.status, body: (await response.json()) as T };
  }

  /** Who has how many of the stations, as the API says, by name: `ana 4, ben 4, cleo 4`. Those who are gone are not there. */
  async shares(): Promise<string> {
    const { body } = await this.ask<{ members: { name: string; owned: number }[] }>('members');
    const shares = body.members.map(({ name, owned }) => `${name} ${owned}`);
    return shares.sort().join(', ');
  }

  async shared(shares: string): Promise<void> {
    const isSo = async () => (await this.shares()) === shares;
    await until(isSo, {
      what: `the stations to be shared: ${shares}`,
      deadlineMs: DEADLINE_MS,
      every: 50,
    });
  }

  /** How the instances are: `ana running, ben frozen, cleo dead`. */
  async states(): Promise<string> {
    const { body } = await this.ask<StagePicture>('stage');
    return body.actors.map(({ name, state }) => `${name} ${state}`).join(', ');
  }

  async are(states: string): Promise<void> {
    const isSo = async () => (await this.states()) === states;
    await until(isSo, {
      what: `the instances to be: ${states}`,
      deadlineMs: DEADLINE_MS,
      every: 50,
    });
  }

  async direct(name: string, action: string): Promise<number> {
    return (await this.ask(`stage/${name}/${action}`, 'POST')).status;
  }

  /** All processes that are, or were, its own. */
  processes(): number[] {
    const ours = `TMPDIR=${this.folder}`;
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => environmentOf(pid).includes(ours))
      .map(Number);
  }

  /** None is left, and no file either. */
  async isGone(): Promise<void> {
    const what = 'all of its processes to be gone';
    await until(() => this.processes().length === 0, { what, deadlineMs: DEADLINE_MS });
  }

  killAll(): void {
    for (const pid of this.processes()) process.kill(pid, 'SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.killAll();
    await this.running[Symbol.asyncDispose]();
  }
}

/** The dead have none. */
function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

describe.concurrent('holdfast demo', { timeout: TIMEOUT_MS }, () => {
  it('US1.1 US2.1 shares the stations among three instances, whatever environment says; who is killed is succeeded, and may come back', async () => {
    await using demo = await Demo.start({ env: SERIOUS });
    await demo.shared('ana 4, ben 4, cleo 4');
    await demo.are('ana running, ben running, cleo running');
    expect(await demo.direct('ana', 'kill')).toBe(200);
    expect(await demo.states()).toBe('ana dead, ben running, cleo running');
    await demo.shared('ben 6, cleo 6');
    // As whoever watches would do it in another terminal.
    process.kill(demo.facts.instances[1]?.pid ?? 0, 'SIGKILL');
    await demo.are('ana dead, ben dead, cleo running');
    await demo.shared('cleo 12');
    expect(await demo.direct('ana', 'start')).toBe(200);
    await demo.are('ana running, ben dead, cleo running');
    await demo.shared('ana 6, cleo 6');
  });

  it('K-04 freezes and thaws an instance, and takes no direction that makes no sense', async () => {
    await using demo = await Demo.start();
    await demo.shared('ana 4, ben 4, cleo 4');
    await demo.are('ana running, ben running, cleo running');
    expect(await demo.direct('ben', 'thaw')).toBe(409);
    expect(await demo.direct('ben', 'start')).toBe(409);
    expect(await demo.direct('nobody', 'kill')).toBe(404);
    expect(await demo.direct('ben', 'freeze')).toBe(200);
    await demo.shared('ana 6, cleo 6');
    expect(await demo.states()).toBe('ana running, ben frozen, cleo running');
    expect(await demo.direct('ben', 'thaw')).toBe(200);
    await demo.shared('ana 4, ben 4, cleo 4');
    const [ana] = demo.facts.instances;
    process.kill(ana?.pid ?? 0, 'SIGSTOP');
    await demo.are('ana frozen, ben running, cleo running');
    process.kill(ana?.pid ?? 0, 'SIGCONT');
    await demo.are('ana running, ben running, cleo running');
  });

  it('does not disturb another one, and shows sessions and workflows beside what is polled', async () => {
    await using one = await Demo.start();
    await using other = await Demo.start();
    expect(one.facts.url).not.toBe(other.facts.url);
    await one.shared('ana 4, ben 4, cleo 4');
    await other.shared('ana 4, ben 4, cleo 4');
    one.running.signal('SIGINT');
    await one.running.end();
    await other.shared('ana 4, ben 4, cleo 4');
    await using holdfast = await openAt({ url: other.facts.store });
    const running = async () => {
      const { body } = await other.ask<{ sessions: { state: string }[] }>(
        'sessions?kind=live&state=RUNNING',
      );
      return body.sessions.length === 2;
    };
    await until(running, { what: 'two sessions that run', deadlineMs: DEADLINE_MS });
    const held = async () => {
      const { body } = await other.ask<{ slots: { state: string }[] }>('slots');
      return body.slots.filter(({ state }) => state === 'held').length === 2;
    };
    await until(held, { what: 'two slots that are held', deadlineMs: DEADLINE_MS });
    const observed = async () =>
      (await holdfast.workflows.get('forecast'))?.state !== 'initialized';
    await until(observed, { what: 'an observation', deadlineMs: DEADLINE_MS });
    const dead = async () => {
      for await (const letter of holdfast.workflows.deadLetters.list('press')) return letter;
      return null;
    };
    await until(dead, { what: 'a dead letter', deadlineMs: DEADLINE_MS });
  });
});

describe('holdfast demo, from its beginning to its end,', { timeout: TIMEOUT_MS }, () => {
  it('leaves no process when it is killed, not even a frozen one, and the next one clears up behind it', async () => {
    await using demo = await Demo.start();
    await demo.are('ana running, ben running, cleo running');
    await demo.direct('cleo', 'freeze');
    demo.running.signal('SIGKILL');
    await demo.isGone();
    const left = readdirSync(demo.folder);
    expect(left).toHaveLength(1);
    await using next = await Demo.start({ folder: demo.folder });
    expect(readdirSync(demo.folder)).not.toContain(left[0]);
    next.running.signal('SIGTERM');
    expect(await next.running.end()).toMatchObject({ code: 0, stderr: '' });
  });

  it('leaves nothing behind when it is asked to end, with one frozen and one dead', async () => {
    await using demo = await Demo.start();
    await demo.are('ana running, ben running, cleo running');
    await demo.direct('ana', 'kill');
    await demo.direct('ben', 'freeze');
    demo.running.signal('SIGINT');
    expect(await demo.running.end()).toMatchObject({ code: 0, stderr: '' });
    expect(demo.processes()).toEqual([]);
    expect(readdirSync(demo.folder)).toEqual([]);
  });

  it('ends at once after a second signal, and leaves nothing behind', async () => {
    await using demo = await Demo.start();
    demo.running.signal('SIGINT');
    demo.running.signal('SIGTERM');
    // Which of the two it hears first is not up to us.
    const { code, signal } = await demo.running.end();
    expect({ code, isBySignal: signal !== null }).toEqual({ code: null, isBySignal: true });
    await demo.isGone();
    expect(readdirSync(demo.folder)).toEqual([]);
  });

  it('refuses a port that is taken, and starts nothing', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const folder = privateFolder();
    const options = { env: { TMPDIR: folder } };
    const { code, stdout, stderr } = await cli(['demo', '--port', `${port}`], options);
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(`^holdfast: port ${port} of 127.0.0.1 is used by another program`),
    );
    expect(readdirSync(folder)).toEqual([]);
    server.close();
  });

  it('is in another store if it is told so, under keys of its own, and takes its sessions out again', async () => {
    await using redis = await startRedis();
    await using demo = await Demo.start({ args: ['--store', redis.url, '--quarantine', 'off'] });
    expect(demo.facts.prefix).toMatch(/^demo-[0-9a-f]{8}:$/);
    await demo.shared('ana 4, ben 4, cleo 4');
    demo.running.signal('SIGINT');
    expect(await demo.running.end()).toMatchObject({ code: 0, stderr: '' });
    await using holdfast = await openAt(redis, { prefix: demo.facts.prefix });
    expect((await holdfast.targets.list()).targets).toEqual([]);
  });

  it('npm start is the demo: it says what to try, shows who has what on a terminal, and how far it is with ending', async () => {
    const help = await startProgram(process.execPath, [START, 'demo', '--help'], {}).end();
    expect(help).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('holdfast demo [options]'),
    });
    const folder = privateFolder();
    const line = `exec "${process.execPath}" "${START}" demo`;
    const env = { TERM: 'xterm', NO_COLOR: '1', TMPDIR: folder };
    await using demo = startProgram('script', ['-qec', line, '/dev/null'], { env });
    const says = (what: RegExp) =>
      until(() => what.exec(demo.stdout), {
        what: `${what} in ${demo.stdout}`,
        deadlineMs: DEADLINE_MS,
      });
    await says(/http:\/\/127\.0\.0\.1:\d+\/#pass=\w+/);
    await says(/kill -9 \d+ +kills ana/);
    await says(/cleo +running +█{4} +4 /);
    demo.type('\u0003');
    expect(await demo.end()).toMatchObject({ code: 0 });
    expect(demo.stdout).toMatch(/Ctrl-C again ends it at once/);
    expect(demo.stdout).toMatch(/Ended in .*\.\r\n$/);
    expect(readdirSync(folder)).toEqual([]);
  });
});
