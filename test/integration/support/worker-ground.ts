import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import {
  type Accepted,
  type Holdfast,
  type Intent,
  type Intents,
  open,
  type Requester,
} from '../../../src/index.ts';
import { type IntentSession, sessionOf } from '../../../src/intents/intent-session.ts';
import { LEASE_CLASSES } from '../../../src/lease/timings.ts';
import { type SessionState, startStream } from '../../../src/store/port/intent-store.ts';
import type { Store } from '../../../src/store/port/store.ts';
import type { CommandPipeline, WorkerOptions } from '../../../src/worker/worker-options.ts';
import { type Child, type Message, spawnChild } from '../../support/child.ts';
import { faultsIn, marksOf, type PipelineRun, runsOf } from '../../support/pipeline-record.ts';
import { atExit, isStopped } from '../../support/process.ts';
import { until } from '../../support/until.ts';
import { childrenOf } from './cli.ts';
import { allSessions, type Ground, type GroundKind } from './intent-ground.ts';

const START_STREAM = startStream('live');

/** The shortest that leaves a busy machine room to renew; and how long a pipeline may take to end. */
export const TTL_MS = 3_000;
export const GRACE_MS = 300;
/** For what takes a moment, or several on a busy machine. */
export const SOON_MS = 15_000;
/** For what happens when a lease has run out: a busy machine adds some. */
export const RECOVERY_MS = TTL_MS + 12_000;
const START_DEADLINE_MS = 30_000;
const CALL = { timeoutMs: 5_000 };
const PRIORITY = 5;
const { keyspace } = LEASE_CLASSES.resource;
/** What has the leases of workers' names in it: they are no session's. */
const NAMES = 'worker:';
/** Once its worker is gone, a pipeline has its grace; and then it is killed, which takes as long as the machine does. */
const LAST_BREATH_MS = GRACE_MS + 10_000;
/** What passes by itself when the machine has less to do. */
const PASSING = ['STORE_UNREACHABLE', 'OUTCOME_UNKNOWN'];
const MOST_TRIES = 5;
const PIPELINES = { node: 'pipeline.mjs', bash: 'pipeline.sh' } as const;

const childPath = (script: string) =>
  fileURLToPath(new URL(`../../children/${script}`, import.meta.url));

/** What befalls a worker at a call of the store: see test/children/worker.mjs. */
export interface Strike {
  readonly verb: string;
  readonly saying?: string;
  readonly when: 'before' | 'after';
  readonly signal: 'SIGKILL' | 'SIGSTOP';
}

export interface WorkerSettings extends WorkerOptions {
  readonly tell?: readonly string[];
  readonly strikes?: Strike;
}

export interface LeaseSeen {
  readonly key: string;
  readonly holder: string;
  readonly fence: number;
  readonly expiresInMs: number;
}

/** A session that runs, and what runs for it. */
export interface Underway {
  readonly session: IntentSession;
  readonly run: PipelineRun;
}

/** A store, workers on it, and what their pipelines write down. */
export class WorkerWorld implements AsyncDisposable {
  readonly ground: Ground;
  readonly store: Store;
  readonly #holdfast: Holdfast;
  readonly #intents: Intents;
  readonly #folder: string;
  readonly #workers: WorkerProcess[] = [];

  private constructor(ground: Ground, holdfast: Holdfast, folder: string) {
    this.ground = ground;
    this.store = ground.store;
    this.#intents = holdfast.intents();
    this.#holdfast = holdfast;
    this.#folder = folder;
  }

  static async on(kind: Pick<GroundKind, 'make'>): Promise<WorkerWorld> {
    const ground = await kind.make();
    const holdfast = await open(ground.store, { on: { 'store.warned': () => {} } });
    return new WorkerWorld(ground, holdfast, await mkdtemp(join(tmpdir(), 'holdfast-worker-')));
  }

  /** The file that all pipelines of this world write to. */
  get record(): string {
    return join(this.#folder, 'record');
  }

  /** A command that writes its life down: see test/children/pipeline.mjs for the words. */
  pipeline(...words: readonly string[]): CommandPipeline {
    return { command: [process.execPath, childPath(PIPELINES.node), this.record, ...words] };
  }

  /** One that costs hardly anything, and lasts for some time between these. */
  smallPipeline(shortestMs: number, longestMs: number): CommandPipeline {
    const times = [String(shortestMs), String(longestMs)];
    return { command: ['bash', childPath(PIPELINES.bash), this.record, ...times] };
  }

  /** A worker that has started. */
  async worker(settings: WorkerSettings = {}): Promise<WorkerProcess> {
    const worker = await this.launch(settings);
    await worker.child.next('started', START_DEADLINE_MS);
    return worker;
  }

  /** A worker that is about to start, or to be refused. */
  async launch({ tell, strikes, ...options }: WorkerSettings = {}): Promise<WorkerProcess> {
    const { url, prefix } = this.ground.at;
    const live = this.pipeline();
    const worker = {
      ...{ ttl: TTL_MS, grace: GRACE_MS, resources: { tuners: 4 } },
      ...{ pipelines: { live, vod: live }, ...options },
    };
    const text = JSON.stringify({ prefix, worker, tell, strikes });
    const process = new WorkerProcess(spawnChild('worker.mjs', { args: [url, text] }));
    this.#workers.push(process);
    await process.isReady();
    return process;
  }

  /** Starts a channel; gives the session's id. */
  async start(serviceRef: string, { profile = 'hd', client = 'a client' } = {}): Promise<string> {
    const by = { tenant: null, client: client.replaceAll(' ', '-') };
    const { session } = await this.submit({ type: 'stream.start', serviceRef, profile }, by);
    return session.id;
  }

  /** Gives the session as it is now. */
  async stop(sessionId: string, { client = 'a client', force = false } = {}) {
    const by = { tenant: null, client: client.replaceAll(' ', '-') };
    const { session } = await this.submit({ type: 'stream.stop', sessionId, force }, by);
    return session;
  }

  /** As clients do: who got no answer asks again. */
  async submit(intent: Intent, by: Requester): Promise<Accepted> {
    const ask = () =>
      this.#intents.submit(intent, by).catch((error: { code?: string }) => {
        if (PASSING.includes(error.code ?? '')) return null;
        throw error;
      });
    for (let tries = 1; tries < MOST_TRIES; tries++) {
      const accepted = await ask();
      if (accepted !== null) return accepted;
    }
    return this.#intents.submit(intent, by);
  }

  /** Puts a session before the workers once more, as a store does that delivers at least once. */
  async deliverAgain(session: string): Promise<void> {
    const entry = { lane: session, priority: PRIORITY, value: { session } };
    await this.store.streams.append(START_STREAM, [entry], CALL);
  }

  async session(id: string): Promise<IntentSession> {
    const [stored] = await this.store.intents.read([id], CALL);
    if (stored == null) throw new Error(`there is no session ${id}`);
    return sessionOf(stored);
  }

  sessions(): Promise<IntentSession[]> {
    return allSessions(this.store);
  }

  /** The session, once it is in this state; one that has ended before that never will be. */
  async reaches(id: string, state: SessionState, deadlineMs = SOON_MS): Promise<IntentSession> {
    let last: IntentSession | null = null;
    const look = async () => {
      last = await this.session(id);
      return last.state === state || last.state === 'ENDED' ? last : null;
    };
    const what = `session ${id} to be ${state}`;
    const found = await until(look, { what, deadlineMs, every: 20 }).catch((error: Error) => {
      throw new Error(`${error.message}; it is ${JSON.stringify(last)}`, { cause: error });
    });
    expect(found, JSON.stringify(found)).toMatchObject({ state });
    return found;
  }

  /** `RUNNING`, and its pipeline has begun; the latest one, where there were several. */
  async runs(id: string, deadlineMs?: number): Promise<Underway> {
    const session = await this.reaches(id, 'RUNNING', deadlineMs);
    return { session, run: await this.begins(id) };
  }

  /** Its pipeline has begun, and may be over. */
  begins(id: string, deadlineMs = SOON_MS): Promise<PipelineRun> {
    const find = () => this.pipelines().findLast((run) => run.session === id);
    return until(find, { what: `the pipeline of ${id} to begin`, deadlineMs });
  }

  /** It runs again, on this worker if one is given, after what it was before. */
  async runsAgain(
    before: Underway,
    { on, deadlineMs = RECOVERY_MS }: { on?: WorkerProcess; deadlineMs?: number } = {},
  ): Promise<Underway> {
    const { id, revision } = before.session;
    let last: Partial<Underway> = {};
    const look = async () => {
      const session = await this.session(id);
      const run = this.pipelines().findLast((one) => one.session === id);
      last = { session, ...(run !== undefined && { run }) };
      if (session.state === 'ENDED') return { session, run };
      const isNew =
        session.revision > revision && run !== undefined && run.fence > before.run.fence;
      const isThere = session.state === 'RUNNING' && (on?.hasTaken(session) ?? true);
      return isNew && isThere ? { session, run } : null;
    };
    const found = await until(look, { what: `${id} to run again`, deadlineMs, every: 20 }).catch(
      (error: Error) => {
        throw new Error(`${error.message}; it is ${JSON.stringify(last)}`, { cause: error });
      },
    );
    expect(found.session, JSON.stringify(found)).toMatchObject({ state: 'RUNNING' });
    return found as Underway;
  }

  ends(id: string, deadlineMs?: number): Promise<IntentSession> {
    return this.reaches(id, 'ENDED', deadlineMs);
  }

  /** What the store has leases on, those of workers' names apart. */
  async leases(): Promise<LeaseSeen[]> {
    const found: LeaseSeen[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.store.leases.list(keyspace, {
        ...{ ...CALL, ...(cursor !== undefined && { cursor }) },
      });
      found.push(...page.leases);
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found
      .map((lease) => ({ ...lease, key: lease.key.slice(keyspace.length) }))
      .filter(({ key }) => !key.startsWith(NAMES))
      .sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async lease(key: string): Promise<LeaseSeen | undefined> {
    return (await this.leases()).find((lease) => lease.key === key);
  }

  /** Nothing is leased: what has ended has let go of everything. */
  async expectAllFree(deadlineMs = SOON_MS): Promise<void> {
    const isFree = async () => (await this.leases()).length === 0;
    await until(isFree, { what: 'all leases to be free', deadlineMs }).catch(() => {});
    expect(await this.leases()).toEqual([]);
  }

  /** What the pipelines have written so far, in the order in which they began. */
  pipelines(): PipelineRun[] {
    return runsOf(marksOf(textOf(this.record)));
  }

  /** No two pipelines were on one slot, channel or session at once, by their own word. */
  expectSound(): void {
    expect(faultsIn(this.pipelines())).toBe('');
  }

  /** Processes of pipelines that still are. */
  survivors(): number[] {
    const pids = this.pipelines().flatMap(({ pids }) => pids);
    return pids.filter((pid) => commandOf(pid).includes(this.record));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.#workers) worker.endStandstill();
    try {
      await Promise.all(this.#workers.map(({ child }) => child.kill()));
      // I-17 holds for every test: without their workers, frozen or killed, pipelines are gone.
      const areGone = () => this.survivors().length === 0;
      await until(areGone, { what: 'pipelines to be gone', deadlineMs: LAST_BREATH_MS });
    } finally {
      for (const pid of this.survivors()) process.kill(pid, 'SIGKILL');
      await this.#holdfast.close();
      await this.ground[Symbol.asyncDispose]();
      await rm(this.#folder, { recursive: true, force: true });
    }
  }
}

/** A process with a worker in it. */
export class WorkerProcess {
  readonly child: Child;
  #id = '';
  #supervisor: number | null = null;

  constructor(child: Child) {
    this.child = child;
  }

  /** The instance's. */
  get id(): string {
    return this.#id;
  }

  async isReady(): Promise<void> {
    const { id } = await this.child.next('ready', START_DEADLINE_MS);
    this.#id = String(id);
  }

  /** Has the sessions that name it as their worker. */
  hasTaken({ worker }: Pick<IntentSession, 'worker'>): boolean {
    return worker === this.#id;
  }

  /** The process that runs its commands, which outlives it by as long as it takes to end them. */
  async supervisor(): Promise<number> {
    const find = () =>
      childrenOf(this.child.pid).find(({ command }) => command.includes('supervisor'));
    const { pid } = await until(find, { what: 'the supervisor', deadlineMs: SOON_MS });
    this.#supervisor = pid;
    atExit(() => this.endStandstill());
    return pid;
  }

  /** A supervisor that a test has stopped would stay for ever, with all that it runs: it is not ours to wait for. */
  endStandstill(): void {
    const pid = this.#supervisor;
    if (pid !== null && commandOf(pid).includes('supervisor') && isStopped(pid))
      process.kill(pid, 'SIGKILL');
  }

  status(): Promise<Message> {
    this.child.send({ do: 'status' });
    return this.child.next('status', SOON_MS);
  }

  /** It stands still, by itself and between two turns. */
  async freeze(): Promise<void> {
    this.child.send({ do: 'freeze' });
    await this.child.next('freezing', SOON_MS);
    await this.#standsStill();
  }

  /** Waits until what was to befall it has. */
  async isStruck({ signal }: Strike, deadlineMs = SOON_MS): Promise<number> {
    const { atMs } = await this.child.next('struck', deadlineMs);
    if (signal === 'SIGSTOP') await this.#standsStill();
    else await this.child.exit();
    return Number(atMs);
  }

  /** All that it has told of one name, so far. */
  told(event: string): Message[] {
    return this.child.received.filter((message) => message.event === event);
  }

  /** Stops it in order; gives when it began and when all was let go of. */
  async stop(how: { within?: number } = {}): Promise<{ fromMs: number; atMs: number }> {
    this.child.send({ do: 'stop', how });
    const { fromMs, atMs } = await this.child.next('stop', START_DEADLINE_MS);
    return { fromMs: Number(fromMs), atMs: Number(atMs) };
  }

  #standsStill(): Promise<true> {
    const { pid } = this.child;
    return until(() => isStopped(pid), {
      ...{ what: `worker ${pid} to stand still`, deadlineMs: SOON_MS, every: 2 },
    });
  }
}

/** Milliseconds on the clock that pipelines write down and that fences are made from. */
export function wallMs(): number {
  return performance.timeOrigin + performance.now();
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function commandOf(pid: number): string {
  return textOf(`/proc/${pid}/cmdline`);
}
