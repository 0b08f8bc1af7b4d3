/** Runs an upgrade: instances of two builds on one store, replaced one after the other, there and back. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Random, seededRandom } from '../src/core/random.ts';
import { killAtExit } from '../test/support/process.ts';
import { type Belief, judgeBeliefs, type SoakViolation } from './soak-judge.ts';
import type { Build } from './upgrade-builds.ts';
import { type Ground, startGround, type UpgradeStore } from './upgrade-grounds.ts';

export interface UpgradeOptions {
  readonly store: UpgradeStore;
  readonly earlier: Build;
  readonly current: Build;
  readonly dwellMs: number;
  readonly seed: number;
  onProgress(line: string): void;
}

export interface UpgradeReport {
  readonly beliefs: number;
  readonly violations: readonly SoakViolation[];
  /** What was accepted and is not done as it should be, and processes that ended badly. */
  readonly problems: readonly string[];
  readonly kills: number;
  readonly stops: number;
  /** What each build has done, by commit. */
  readonly done: Readonly<Record<string, Counts>>;
  readonly accepted: number;
}

export interface Refusal {
  readonly made: string;
  readonly opened: string;
  readonly code: string | null;
  readonly message: string;
  readonly isChanged: boolean;
}

type Counts = Record<string, number>;

interface Instance {
  readonly name: string;
  readonly build: Build;
  readonly file: string;
  readonly process: ChildProcess;
}

const INSTANCES = 3;
const KEYS = ['a', 'b'];
const TARGETS = ['t1', 't2', 't3', 't4', 't5', 't6'];
const TTL_MS = 3_000;
const READY_MS = 60_000;
const STOP_MS = 30_000;
const CHECK_MS = 30_000;
/** An instance is killed in this many of all replacements. */
const KILLED_SHARE = 0.5;

export async function runUpgrade(options: UpgradeOptions): Promise<UpgradeReport> {
  const { earlier, current, seed, onProgress, dwellMs } = options;
  const ground = await startGround(options.store);
  const random = seededRandom(seed);
  const all: Instance[] = [];
  const counts = { kills: 0, stops: 0 };
  const problems: string[] = [];
  const start = async (build: Build) => {
    const instance = await startInstance(build, all.length, ground);
    all.push(instance);
    return instance;
  };
  try {
    const running: Instance[] = [];
    for (let i = 0; i < INSTANCES; i++) running.push(await start(earlier));
    await sleep(dwellMs);
    for (const build of [current, earlier, current]) {
      onProgress(`to ${build.commit}`);
      for (let i = 0; i < INSTANCES; i++) {
        const old = running.shift();
        if (old !== undefined) await end(old, random, counts, problems);
        running.push(await start(build));
        await sleep(dwellMs);
      }
      onProgress(progress(all));
    }
    onProgress('all are told to stop');
    for (const instance of running) await stop(instance, problems);
    counts.stops += running.length;
    const accepted = linesOf(all, 'accepted');
    onProgress(`${accepted.length} workflows and sessions were accepted: are they done?`);
    problems.push(...(await check(current, ground, accepted)));
    const beliefs = all.flatMap(({ file }) => readLines<Belief>(`${file}.beliefs`));
    const done = doneBy(all);
    problems.push(...blindSpots(done, [earlier, current]));
    const violations = judgeBeliefs(beliefs);
    return {
      ...counts,
      beliefs: beliefs.length,
      violations,
      problems,
      done,
      accepted: accepted.length,
    };
  } finally {
    await ground.end();
  }
}

/** One build makes a store, another one opens it. */
export async function openByOther(kind: UpgradeStore, made: Build, other: Build): Promise<Refusal> {
  const ground = await startGround(kind);
  try {
    const first = await opened(made, ground.url);
    if (first.code !== null)
      throw new Error(`${made.commit} cannot make a store: ${first.message}`);
    const before = await ground.digest();
    const { code, message } = await opened(other, ground.url);
    const isChanged = (await ground.digest()) !== before;
    return { made: made.commit, opened: other.commit, code, message, isChanged };
  } finally {
    await ground.end();
  }
}

async function startInstance(build: Build, number: number, ground: Ground): Promise<Instance> {
  const name = `i${number}`;
  const file = join(ground.folder, name);
  const { entry } = build;
  const settings = {
    name,
    entry,
    store: ground.url,
    keys: KEYS,
    targets: TARGETS,
    file,
    ttlMs: TTL_MS,
  };
  const child = startChild('upgrade-client.mjs', settings);
  await messageOf(child, `${name} of ${build.commit}`, READY_MS);
  return { name, build, file, process: child };
}

function startChild(script: string, settings: object): ChildProcess {
  const path = fileURLToPath(new URL(`./children/${script}`, import.meta.url));
  const args = ['--no-warnings', path, JSON.stringify(settings)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  killAtExit(child);
  return child;
}

/** The first message of a child. */
async function messageOf<T>(child: ChildProcess, name: string, withinMs: number): Promise<T> {
  const late = AbortSignal.timeout(withinMs);
  const first = await Promise.race([
    once(child, 'message', { signal: late }),
    once(child, 'exit', { signal: late }).then(() => [null]),
  ]).catch(() => [null]);
  const [message] = first as [T | null];
  if (message === null) throw new Error(`${name} has said nothing within ${withinMs} ms`);
  return message;
}

async function end(
  instance: Instance,
  random: Random,
  counts: { kills: number; stops: number },
  problems: string[],
): Promise<void> {
  if (random.next() >= KILLED_SHARE) {
    counts.stops++;
    return stop(instance, problems);
  }
  counts.kills++;
  const exited = once(instance.process, 'exit');
  instance.process.kill('SIGKILL');
  await exited;
}

async function stop({ name, build, process: child }: Instance, problems: string[]): Promise<void> {
  if (child.exitCode !== null) {
    problems.push(`${name} of ${build.commit} had ended with ${child.exitCode}`);
    return;
  }
  const exited = once(child, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
  child.kill('SIGTERM');
  const [code] = await exited.catch(() => ['no end']);
  if (code === 0) return;
  problems.push(`${name} of ${build.commit} was told to stop, and ended with ${code}`);
  child.kill('SIGKILL');
}

interface Line {
  readonly what: string;
  readonly id: string;
}

async function check(build: Build, ground: Ground, accepted: readonly Line[]): Promise<string[]> {
  const idsOf = (wanted: string) =>
    accepted.filter(({ what }) => what === wanted).map(({ id }) => id);
  const child = startChild('upgrade-check.mjs', {
    entry: build.entry,
    store: ground.url,
    ttlMs: TTL_MS,
    workflows: idsOf('workflow'),
    sessions: idsOf('session'),
    deadlineMs: CHECK_MS,
  });
  const { problems } = await messageOf<{ problems: string[] }>(child, 'the check', 2 * CHECK_MS);
  return problems;
}

async function opened(
  build: Build,
  store: string,
): Promise<{ code: string | null; message: string }> {
  const child = startChild('upgrade-open.mjs', { entry: build.entry, store });
  const exited = once(child, 'exit');
  const answer = await messageOf<{ code: string | null; message: string }>(
    child,
    build.commit,
    READY_MS,
  );
  await exited;
  return answer;
}

/** A harness in which a build did nothing of a kind has shown nothing of it. */
function blindSpots(done: Readonly<Record<string, Counts>>, builds: readonly Build[]): string[] {
  return builds.flatMap(({ commit }) =>
    ['lease', 'poll', 'workflow', 'session']
      .filter((what) => !done[commit]?.[what])
      .map((what) => `${commit} has done nothing of the kind ${what}`),
  );
}

function doneBy(all: readonly Instance[]): Record<string, Counts> {
  const done: Record<string, Counts> = {};
  for (const { build, file } of all) {
    const counts = done[build.commit] ?? {};
    done[build.commit] = counts;
    for (const { what } of readLines<Line>(`${file}.done`)) counts[what] = (counts[what] ?? 0) + 1;
  }
  return done;
}

function progress(all: readonly Instance[]): string {
  const beliefs = all.flatMap(({ file }) => readLines<Belief>(`${file}.beliefs`));
  return `${beliefs.length} beliefs · ${judgeBeliefs(beliefs).length} violations`;
}

function linesOf(all: readonly Instance[], ending: string): Line[] {
  return all.flatMap(({ file }) => readLines<Line>(`${file}.${ending}`));
}

/** A process that was killed may have left half a line. */
function readLines<T>(path: string): T[] {
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  return whole
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}
