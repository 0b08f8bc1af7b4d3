/** Runs a soak: real processes with different clients and timings on one store, and faults inflicted on all of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '../src/core/random.ts';
import { killAtExit } from '../test/support/process.ts';
import { type RedisServer, startRedis } from '../test/support/redis-server.ts';
import { type Belief, judgeBeliefs, type SoakViolation } from './soak-judge.ts';

export interface SoakOptions {
  readonly store: 'redis' | 'sqlite';
  readonly seconds: number;
  readonly seed: number;
  readonly isNaive: boolean;
  readonly signal: AbortSignal;
  onProgress(line: string): void;
}

export interface SoakReport {
  readonly beliefs: number;
  readonly violations: readonly SoakViolation[];
  readonly faults: Readonly<Record<string, number>>;
  /** What the processes did, added up. */
  readonly counts: Readonly<Record<string, number>>;
  readonly clients: readonly string[];
  /** Processes that did not end as they should. */
  readonly broken: readonly string[];
}

/** How each process reaches the store. */
const CLIENTS = {
  redis: ['url', 'node-redis', 'ioredis', 'url'],
  sqlite: ['url', 'url', 'url', 'url'],
} as const;
const KEYS = ['a', 'b', 'c'];
const MAX_TTL_MS = 5_000;
const READY_MS = 30_000;
/** A process that was frozen at the end finishes what it does, and closes. */
const END_MS = 30_000;
const LINE_EVERY_MS = 10_000;
const PAUSE_MOST_MS = 900;

type Counts = Record<string, number>;

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-soak-'));
  const redis = options.store === 'redis' ? await startRedis() : null;
  const store = redis?.url ?? `sqlite:${join(folder, 'soak.db')}`;
  try {
    const clients = options.isNaive ? CLIENTS.redis.map(() => 'naive') : CLIENTS[options.store];
    const children = clients.map((client, number) =>
      startChild(client, { number, folder, store, options }),
    );
    await Promise.all(children.map(ready));
    const faults: Counts = {};
    await inflict(children, redis, options, faults);
    const broken = await ended(children);
    const beliefs = children.flatMap(({ file }) => readBeliefs(file));
    const counts = children.map(({ file }) => readCounts(file)).reduce(sum, {});
    const violations = judgeBeliefs(beliefs);
    return { beliefs: beliefs.length, violations, faults, counts, clients: [...clients], broken };
  } finally {
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Child {
  readonly name: string;
  readonly file: string;
  readonly process: ChildProcess;
}

function startChild(
  client: string,
  of: { number: number; folder: string; store: string; options: SoakOptions },
): Child {
  const { number, folder, store, options } = of;
  const name = `p${number}`;
  const file = join(folder, `${name}.jsonl`);
  const others = [0, 1, 2, 3].map((other) => `p${other}`);
  const settings = {
    name,
    client,
    store,
    keys: KEYS,
    file,
    others,
    maxTtlMs: MAX_TTL_MS,
    seed: options.seed * 31 + number,
    forMs: options.seconds * 1_000,
  };
  const script = options.isNaive ? 'soak-naive.mjs' : 'soak-client.mjs';
  const path = fileURLToPath(new URL(`./children/${script}`, import.meta.url));
  const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const;
  const args = ['--no-warnings', path, JSON.stringify(settings)];
  const child = spawn(process.execPath, args, { stdio: [...stdio] });
  killAtExit(child);
  return { name, file, process: child };
}

async function ready({ name, process: child }: Child): Promise<void> {
  const late = AbortSignal.timeout(READY_MS);
  const [what] = await Promise.race([
    once(child, 'message', { signal: late }),
    once(child, 'exit', { signal: late }),
  ]).catch(() => [null]);
  if (what === null || typeof what !== 'object')
    throw new Error(`${name} has not opened its store within ${READY_MS} ms`);
}

/** Freezes processes and disturbs the store until the time is up. */
async function inflict(
  children: readonly Child[],
  redis: RedisServer | null,
  options: SoakOptions,
  faults: Counts,
): Promise<void> {
  const endMs = performance.now() + options.seconds * 1_000;
  const isOver = () => performance.now() >= endMs || options.signal.aborted;
  const loops = children.map((child, i) => freezing(child, options.seed + i, isOver, faults));
  if (redis !== null) loops.push(disturbing(redis, options.seed, isOver, faults));
  loops.push(telling(children, options, endMs, isOver));
  await Promise.all(loops);
}

async function freezing(
  { process: child }: Child,
  seed: number,
  isOver: () => boolean,
  faults: Counts,
): Promise<void> {
  const random = seededRandom(seed * 7 + 1);
  while (!isOver() && child.exitCode === null) {
    await sleep(random.next() * 1_500);
    child.kill('SIGSTOP');
    add(faults, 'process frozen');
    await sleep(random.next() < 0.6 ? random.next() * 60 : random.next() * 3_500);
    child.kill('SIGCONT');
  }
}

async function disturbing(
  redis: RedisServer,
  seed: number,
  isOver: () => boolean,
  faults: Counts,
): Promise<void> {
  const random = seededRandom(seed * 7 + 5);
  const ms = () => Math.ceil(random.next() * PAUSE_MOST_MS);
  const ways: readonly [string, () => Promise<unknown>][] = [
    ['connections killed', () => redis.cli('CLIENT', 'KILL', 'TYPE', 'normal')],
    ['subscribers killed', () => redis.cli('CLIENT', 'KILL', 'TYPE', 'pubsub')],
    ['store paused', () => redis.cli('CLIENT', 'PAUSE', ms(), 'ALL')],
    ['scripts forgotten', () => redis.cli('SCRIPT', 'FLUSH')],
    ['store frozen', () => frozen(redis, ms())],
  ];
  while (!isOver()) {
    await sleep(random.next() * 3_000);
    const [name, act] = ways[Math.floor(random.next() * ways.length)] ?? ways[0] ?? ['', sleep];
    await act().catch(() => {});
    add(faults, name);
  }
}

async function frozen(redis: RedisServer, ms: number): Promise<void> {
  await redis.freeze();
  await sleep(ms);
  await redis.thaw();
}

/** From time to time: how far it is, and whether the judge has found something yet. */
async function telling(
  children: readonly Child[],
  { seconds, onProgress, isNaive }: SoakOptions,
  endMs: number,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    await sleep(Math.min(LINE_EVERY_MS, Math.max(1, endMs - performance.now())));
    const beliefs = children.flatMap(({ file }) => readBeliefs(file));
    const violations = isNaive ? 0 : judgeBeliefs(beliefs).length;
    const doneS = Math.round(seconds - Math.max(0, endMs - performance.now()) / 1_000);
    onProgress(
      `${doneS} of ${seconds} s · ${beliefs.length} leases held · ${violations} violations`,
    );
  }
}

/** Waits for every process to end; gives those that had to be killed, or ended with an error. */
async function ended(children: readonly Child[]): Promise<string[]> {
  const broken: string[] = [];
  const late = AbortSignal.timeout(END_MS);
  for (const { name, process: child } of children) {
    child.kill('SIGCONT');
    if (child.exitCode === null && child.signalCode === null)
      await once(child, 'exit', { signal: late }).catch(() => child.kill('SIGKILL'));
    if (child.exitCode !== 0) broken.push(name);
  }
  return broken;
}

function readBeliefs(file: string): Belief[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  // The last one may be half written.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Belief);
}

function readCounts(file: string): Counts {
  const path = `${file}.counts`;
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Counts) : {};
}

function sum(all: Counts, counts: Counts): Counts {
  for (const [name, count] of Object.entries(counts)) add(all, name, count);
  return all;
}

function add(counts: Counts, name: string, count = 1): void {
  counts[name] = (counts[name] ?? 0) + count;
}
