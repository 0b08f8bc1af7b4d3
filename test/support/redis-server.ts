import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Home, LOOPBACK } from './home.ts';
import { atExit, freezeProcess, killAtExit, thawProcess } from './process.ts';
import { type RedisConfig, redisConfig, userInfo } from './redis-config.ts';
import { type Credentials, call, type Reply } from './resp.ts';
import { until, within } from './until.ts';

const START_DEADLINE_MS = 10_000;
const STOP_DEADLINE_MS = 5_000;
const CLI_DEADLINE_MS = 5_000;
/** How often another port is tried when somebody was faster. */
const MAX_PORT_ATTEMPTS = 5;
const PORT_RETRY_MS = 50;
/** The end of the server's output that an error shows. */
const MAX_OUTPUT_CHARS = 4_000;

export interface RedisOptions {
  /** More options for redis-server, such as `['--maxmemory', '2mb']`. They win over the defaults. */
  args?: readonly string[];
  /** A folder of the caller's, who removes it too. By default a private one, removed by `stop`. */
  dir?: string;
  /** Keeps data across `restart`. Off by default. */
  appendonly?: boolean;
  /** Starts as a replica of this server, and is ready when it is in step with it. */
  replicaOf?: RedisServer;
  /** By default one that the kernel picks. */
  port?: number;
  /** Picks a port, and another one when somebody was faster. By default the kernel does. */
  pickPort?: () => Promise<number>;
  /** Where it runs. On this host by default. */
  pickHome?: () => Promise<Home>;
  /** The only user there is; without a name the default user, who has a password then. */
  credentials?: Credentials;
  /**
   * Reads who it is from a file, which it rewrites on CONFIG REWRITE, as a sentinel has it do: after
   * `restart` it follows whom it followed last, or nobody, and does not wait to be in step.
   */
  keepsConfig?: boolean;
  /**
   * Starts as a sentinel, with these lines in its file, split into words. It rewrites that file as it
   * learns. Of the other options only those for its place and its credentials are meant for it.
   */
  sentinel?: readonly (readonly [string, ...string[]])[];
}

/** Starts a redis-server of its own for a test. Use `await using`, or call `stop`. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    // A folder for each attempt: a sentinel's file names the port that was taken.
    const dir = options.dir ?? (await privateDir());
    const port = options.port ?? (await (options.pickPort ?? freePort)());
    const home = (await options.pickHome?.()) ?? LOOPBACK;
    const server = new RedisServer(port, dir, options, home);
    try {
      await server.boot();
      return server;
    } catch (error) {
      await server.stop();
      const isPortTaken = error instanceof PortTakenError && options.port === undefined;
      if (!isPortTaken || attempt >= MAX_PORT_ATTEMPTS) throw error;
    }
  }
}

/** Starts them at the same time. If one does not start, none is left running. */
export async function startAllRedis(options: readonly RedisOptions[]): Promise<RedisServer[]> {
  const outcomes = await Promise.allSettled(options.map(startRedis));
  const servers = outcomes.flatMap((outcome) =>
    outcome.status === 'fulfilled' ? [outcome.value] : [],
  );
  const failure = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failure === undefined) return servers;
  await stopAllRedis(servers);
  throw failure.reason;
}

export async function stopAllRedis(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()));
}

async function privateDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-redis-'));
  atExit(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A port of the loopback interface that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return address.port;
}

class PortTakenError extends Error {}

export class RedisServer {
  readonly port: number;
  readonly url: string;
  readonly dir: string;
  readonly home: Home;
  readonly #options: RedisOptions;
  #child: ChildProcess | undefined;
  #isFrozen = false;
  #output = '';

  constructor(port: number, dir: string, options: RedisOptions, home = LOOPBACK) {
    this.port = port;
    this.url = `redis://${userInfo(options.credentials)}${home.address}:${port}`;
    this.dir = dir;
    this.home = home;
    this.#options = options;
  }

  /** The process id; another one after `restart`. */
  get pid(): number {
    if (this.#child?.pid === undefined)
      throw new Error(`redis on port ${this.port} is not running`);
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Whether it runs and is not frozen: nobody else can be asked anything. */
  get isAwake(): boolean {
    return this.isRunning && !this.#isFrozen;
  }

  /** Starts the process and waits until it answers. `startRedis` and `restart` call this. */
  async boot(): Promise<void> {
    if (this.#child !== undefined) throw new Error(`redis on port ${this.port} runs already`);
    this.#output = '';
    this.#isFrozen = false;
    const { args, file } = redisConfig(this.port, this.dir, this.#options, this.home);
    const isAsTold = await this.#writeConfig(file);
    const [program = '', ...words] = [...this.home.enter, 'redis-server', ...args];
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    killAtExit(child);
    const collect = (chunk: Buffer) => {
      this.#output = (this.#output + chunk.toString()).slice(-MAX_OUTPUT_CHARS);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    // 'close' comes after the output has been read to its end, 'exit' may not.
    const ended = new Promise<never>((_, reject) => {
      child.once('error', reject);
      child.once('close', () => {
        if (this.#child === child) this.#child = undefined;
        reject(this.#endedError());
      });
    });
    ended.catch(() => {});
    const ready = until(() => this.#isReady(isAsTold), {
      what: `redis-server on port ${this.port} to be ready`,
      deadlineMs: START_DEADLINE_MS,
    });
    ready.catch(() => {});
    await Promise.race([ready, ended]);
  }

  /** Stops the process in its tracks (SIGSTOP): connections stay open, nothing is answered. */
  async freeze(): Promise<void> {
    this.#isFrozen = true;
    await freezeProcess(this.pid);
  }

  /** Lets it go on (SIGCONT): what lies in its socket buffers is carried out now. */
  async thaw(): Promise<void> {
    await thawProcess(this.pid);
    this.#isFrozen = false;
  }

  /** SIGKILL, and waits for the end. Frozen servers die too. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await within(STOP_DEADLINE_MS, closed);
  }

  /** Kills it if it runs and starts it again on the same port, with its data as the disk has it. */
  async restart(options: { empty?: boolean } = {}): Promise<void> {
    await this.kill();
    if (options.empty) await this.#emptyDir();
    const startedAt = performance.now();
    for (;;) {
      try {
        await this.boot();
        return;
      } catch (error) {
        // The port was free for a moment: who took it for a passing connection gives it back.
        const isHopeful = performance.now() - startedAt < START_DEADLINE_MS;
        if (!(error instanceof PortTakenError) || !isHopeful) throw error;
        await sleep(PORT_RETRY_MS);
      }
    }
  }

  /** One command over a connection of its own. Throws what Redis answers as an error. */
  cli(...args: readonly (string | number)[]): Promise<Reply> {
    const { address } = this.home;
    return call(this.port, args, CLI_DEADLINE_MS, this.#options.credentials, address);
  }

  /** The fields of an INFO section, such as `(await redis.info('server')).run_id`. */
  async info(section: string): Promise<Record<string, string>> {
    const lines = String(await this.cli('INFO', section)).split('\r\n');
    const fields = lines.filter((line) => line.includes(':') && !line.startsWith('#'));
    return Object.fromEntries(
      fields.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
    );
  }

  /** Ends it, frozen or not, and removes its private folder. May be called again. */
  async stop(): Promise<void> {
    await this.kill();
    if (this.#options.dir !== undefined) return;
    await rm(this.dir, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Returns whether the process is about to be what the options say, and not what it has become since. */
  async #writeConfig(file: RedisConfig['file']): Promise<boolean> {
    if (file === undefined) return true;
    if (existsSync(file.path)) return false;
    await writeFile(file.path, file.text);
    return true;
  }

  async #isReady(isAsTold: boolean): Promise<boolean> {
    // A server that still loads its data answers INFO already, but not PING.
    if ((await this.cli('PING')) !== 'PONG') return false;
    // Somebody else's server may answer at this port while ours is about to fail for it.
    if ((await this.info('server')).process_id !== String(this.pid)) return false;
    if (this.#options.replicaOf === undefined || !isAsTold) return true;
    return (await this.info('replication')).master_link_status === 'up';
  }

  #endedError(): Error {
    const message = `redis-server on port ${this.port} ended:\n${this.#output}`;
    const isPortTaken = /Address already in use|Failed listening on port/.test(this.#output);
    return isPortTaken ? new PortTakenError(message) : new Error(message);
  }

  async #emptyDir(): Promise<void> {
    const names = await readdir(this.dir);
    const paths = names.map((name) => join(this.dir, name));
    await Promise.all(paths.map((path) => rm(path, { recursive: true, force: true })));
  }
}
