import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { Child, type Message } from '../support/child.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { install, pathOf, thisMachine } from '../support/require-redis.ts';
import { until } from '../support/until.ts';
import { type Api, type ApiOptions, startApi, WRITER } from './support/api.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();
beforeAll(() => {
  for (const [program, debian] of PROGRAMS)
    if (pathOf(program, process.env.PATH) === undefined) install(thisMachine, [debian]);
}, 300_000);
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

/** What the programs need, and the Debian packages that have it. */
const PROGRAMS = [
  ['python3', 'python3'],
  ['curl', 'curl'],
  ['go', 'golang-go'],
] as const;

const path = (from: string) => fileURLToPath(new URL(from, import.meta.url));
/** Short enough for a test, long enough for a busy machine: a client asks for at least a second. */
const TTL_S = 4;
const DEADLINE_MS = 40_000;
const TEST_DEADLINE_MS = 90_000;

interface Language {
  readonly name: string;
  readonly command: readonly string[];
}

/** The Go program is built here. */
const FOLDER = mkdtempSync(join(tmpdir(), 'holdfast-go-'));

const LANGUAGES: readonly Language[] = [
  { name: 'Python', command: ['python3', path('../children/http-lease.py')] },
  { name: 'Bash', command: ['bash', path('../children/http-lease.sh')] },
  { name: 'Go', command: [join(FOLDER, 'http-lease')] },
];

/** A program in another language with one lease, in a process group of its own. */
class Program implements AsyncDisposable {
  readonly #child: Child;

  constructor({ name, command: [file = '', ...args] }: Language, urls: string[], key: string) {
    const all = [...args, urls.join(','), WRITER.token, key];
    this.#child = new Child(name, spawn(file, all, { stdio: 'pipe', detached: true }));
  }

  async tell(line: string, event: string): Promise<Record<string, unknown>> {
    this.#child.send(line);
    return this.#child.next(event, DEADLINE_MS);
  }

  next(event: string): Promise<Record<string, unknown>> {
    return this.#child.next(event, DEADLINE_MS);
  }

  acquire({ wait = 0 } = {}): Promise<Record<string, unknown>> {
    return this.tell(`acquire ${TTL_S} ${wait}`, 'acquired');
  }

  /** Granted or refused at once. A server that is too busy to answer in time is asked again. */
  async attempt(): Promise<Record<string, unknown>> {
    for (;;) {
      this.#child.send(`acquire ${TTL_S} 0`);
      const isOutcome = ({ event }: Message) => event === 'acquired' || event === 'failed';
      const outcome = await this.#child.next(isOutcome, DEADLINE_MS);
      if (outcome.event === 'acquired' || /HELD|QUARANTINED/.test(String(outcome.code)))
        return outcome;
    }
  }

  /** Stops all that the program consists of, as the host does when it sleeps. */
  async freeze(): Promise<void> {
    process.kill(-this.#child.pid, 'SIGSTOP');
    await this.#child.freeze();
  }

  thaw(): void {
    process.kill(-this.#child.pid, 'SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.kill(-this.#child.pid, 'SIGKILL');
    await this.#child.exit();
  }
}

const STORIES = { concurrent: true, timeout: TEST_DEADLINE_MS };

describe.each(LANGUAGES)('a lease of a program in $name', STORIES, (language) => {
  let redis: RedisServer;
  beforeAll(async () => {
    if (language.name === 'Go') buildGo();
    redis = await startRedis();
  }, DEADLINE_MS * 3);
  afterAll(() => redis?.stop());

  const serve = (options: Partial<ApiOptions> = {}): Promise<Api> =>
    startApi({ url: redis.url, ...options });
  const program = (key: string, ...apis: { url: string }[]) =>
    new Program(
      language,
      apis.map(({ url }) => url),
      key,
    );
  /** The next holder, in the same language, over a server that works. When it was granted. */
  const successor = async (key: string, api: Api) => {
    const next = program(key, api);
    const grant = await next.acquire({ wait: 3 * TTL_S });
    return { next, at: Number(grant.at), fence: Number(grant.fence) };
  };

  it('B-27 B-26 ends before the next holder has it if its server freezes', async () => {
    await using frozen = await serve();
    await using other = await serve();
    await using holder = program('frozen', frozen);
    const { fence } = await holder.acquire();
    await holder.tell('watch', 'watching');
    await frozen.child.freeze();
    const { next, at, fence: higher } = await successor('frozen', other);
    await using _ = next;
    const { lastHeldAt } = await holder.next('over');
    expect(Number(lastHeldAt)).toBeLessThan(at);
    expect(higher).toBeGreaterThan(Number(fence));
    await frozen.child.thaw();
  });

  it('B-27 continues over another server if its own is killed', async () => {
    await using killed = await serve();
    await using other = await serve();
    await using holder = program('killed', killed, other);
    const { fence } = await holder.acquire();
    await killed.child.kill();
    // Longer than a TTL: only renewals over the other server keep it.
    const { isHeld } = await holder.tell(`block ${2 * TTL_S}`, 'answer');
    expect(isHeld).toBe(true);
    const { body } = await other.get('/api/v3/leases/killed');
    expect(body).toMatchObject({ state: 'held', fence: String(fence) });
    expect(await holder.tell('release', 'released')).toMatchObject({ released: true });
  });

  it('B-27 ends in time if its only server is killed', async () => {
    await using killed = await serve();
    await using other = await serve();
    await using holder = program('alone', killed);
    await holder.acquire();
    await holder.tell('watch', 'watching');
    await killed.child.kill();
    const { next, at } = await successor('alone', other);
    await using _ = next;
    expect(Number((await holder.next('over')).lastHeldAt)).toBeLessThan(at);
  });

  it('B-27 ends in time over a half-open connection', async () => {
    await using api = await serve();
    const target = { host: '127.0.0.1', port: Number(new URL(api.url).port) };
    await using proxy = await FaultProxy.start({ target });
    await using holder = program('half-open', { url: `http://127.0.0.1:${proxy.port}` });
    await holder.acquire();
    await holder.tell('watch', 'watching');
    await proxy.halfOpen();
    const { next, at } = await successor('half-open', api);
    await using _ = next;
    expect(Number((await holder.next('over')).lastHeldAt)).toBeLessThan(at);
  });

  it('B-27 is over for a program that was frozen for longer than the TTL, before it does anything', async () => {
    await using api = await serve();
    await using holder = program('sleeper', api);
    await holder.acquire();
    await holder.freeze();
    const { next } = await successor('sleeper', api);
    await using _ = next;
    holder.thaw();
    expect(await holder.tell('ask', 'answer')).toMatchObject({ isHeld: false });
    expect(await next.tell('ask', 'answer')).toMatchObject({ isHeld: true });
  });

  it('B-27 is kept while the thread that works is blocked', async () => {
    await using api = await serve();
    await using holder = program('blocked', api);
    await holder.acquire();
    expect(await holder.tell(`block ${2 * TTL_S}`, 'answer')).toMatchObject({ isHeld: true });
  });

  it('B-27 has one holder of two that race, and passes to the other with a release', async () => {
    await using api = await serve();
    await using a = program('race', api);
    await using b = program('race', api);
    const outcomes = await Promise.all([a, b].map((one) => one.attempt()));
    expect(outcomes.map(({ event }) => event).sort()).toEqual(['acquired', 'failed']);
    expect(outcomes.find(({ event }) => event === 'failed')).toMatchObject({ code: 'LEASE_HELD' });
    const [winner, loser] = outcomes[0]?.event === 'acquired' ? [a, b] : [b, a];
    const waiting = loser.acquire({ wait: 3 * TTL_S });
    await winner.tell('release', 'released');
    const fences = outcomes.map(({ fence }) => Number(fence ?? 0));
    expect(Number((await waiting).fence)).toBeGreaterThan(Math.max(...fences));
    expect(await winner.tell('ask', 'answer')).toMatchObject({ isHeld: false });
  });

  it('B-27 is not granted in a quarantine, and is granted to one that waits for its end', async () => {
    const forgetful = await startRedis();
    await using api = await serve({ url: forgetful.url, quarantine: 'on', maxTtl: '8s' });
    await using holder = program('quarantined', api);
    await holder.acquire({ wait: 20 });
    await holder.tell('release', 'released');
    // It keeps nothing on disk, so the holder of a lost lease may still act.
    await forgetful.kill();
    await forgetful.restart();
    const isRefused = async () => (await holder.attempt()).code === 'STORE_QUARANTINED';
    await until(isRefused, { what: 'the quarantine', deadlineMs: DEADLINE_MS });
    const grant = await holder.acquire({ wait: 20 });
    expect(grant).toMatchObject({ isHeld: true });
    await forgetful.stop();
  });
});

/** Offline, with a cache of its own: a module that needs another one fails. */
function buildGo(): void {
  const module = join(FOLDER, 'src');
  mkdirSync(module);
  cpSync(path('../children/http-lease.go'), join(module, 'main.go'));
  const replace = `replace holdfast => ${path('../../clients/go')}`;
  const require = 'require holdfast v0.0.0';
  writeFileSync(join(module, 'go.mod'), `module story\n\ngo 1.19\n\n${require}\n\n${replace}\n`);
  const env = {
    ...process.env,
    GOPROXY: 'off',
    GOFLAGS: '-mod=mod',
    GOCACHE: join(FOLDER, 'cache'),
  };
  const args = ['build', '-o', join(FOLDER, 'http-lease'), '.'];
  const { status, stderr } = spawnSync('go', args, { cwd: module, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`go build failed: ${stderr}`);
}
