import { Emitter, type EventName, type Events } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { untraced } from '../../src/core/tracing.ts';
import type { Intent, Requester } from '../../src/intents/intent.ts';
import { type IntentSession, sessionOf } from '../../src/intents/intent-session.ts';
import { type IntentOptions, Intents } from '../../src/intents/intents.ts';
import { type KindDeclarations, readKinds } from '../../src/intents/kind.ts';
import { Leases } from '../../src/lease/leases.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { DEFAULT_MAX_TTLS } from '../../src/store/port/keyspaces.ts';
import type { Commands } from '../../src/worker/supervisor/commands.ts';
import type { GroupRecord, Host } from '../../src/worker/supervisor/host.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';
import type { ReadReply } from '../../src/store/port/lease-store.ts';
import type { PipelineContext, PipelineFunction } from '../../src/worker/pipelines/pipeline.ts';
import { Worker } from '../../src/worker/worker.ts';
import type { WorkerOptions } from '../../src/worker/worker-options.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore, type StoreFaults } from '../../testing/fakes/faulty-store.ts';

const CALL = { timeoutMs: 1_000 };
export const CLIENT: Requester = { tenant: 'acme', client: 'ann' };

/** One that runs, as the test sees and steers it. */
export interface Played {
  readonly session: IntentSession;
  readonly context: PipelineContext;
  readonly worker: string;
  isOver: boolean;
  /** Lets it end by itself. */
  end(result?: unknown): void;
  fail(message: string): void;
}

export interface WorkerActor {
  readonly worker: Worker;
  readonly instanceId: string;
  readonly faults: StoreFaults;
  readonly happened: { readonly name: EventName; readonly facts: object }[];
}

const WATCHED: EventName[] = [
  ...(['session.advanced', 'session.recovered', 'pipeline.started', 'pipeline.ended'] as const),
  ...([
    'pipeline.retried',
    'pipeline.stuck',
    'worker.reclaimed',
    'worker.stalled',
    'worker.resumed',
  ] as const),
  ...(['session.unreadable'] as const),
  ...(['lease.acquired', 'lease.released', 'lease.lost', 'lease.abandoned'] as const),
];

/** A host on which a test decides who lives. */
export class FakeHost implements Host {
  id: string | null = 'host';
  readonly self: string;
  readonly #world: { locks: Map<string, string>; dead: Set<string>; killed: GroupRecord[] };
  /** Whether what is left of a group can be ended. */
  canEnd = true;

  constructor(self: string, world: FakeHost['world']) {
    this.self = self;
    this.#world = world;
  }

  get world(): { locks: Map<string, string>; dead: Set<string>; killed: GroupRecord[] } {
    return this.#world;
  }

  isAlive(self: string): boolean {
    return !this.#world.dead.has(self);
  }

  async lock(called: string) {
    const { locks, dead } = this.#world;
    const name = `${this.id} ${called}`;
    const has = locks.get(name);
    if (has !== undefined && !dead.has(has)) return null;
    locks.set(name, this.self);
    const close = () => {
      if (locks.get(name) === this.self) locks.delete(name);
    };
    return { fd: -1, close };
  }

  async endGroup(record: GroupRecord): Promise<boolean> {
    if (this.canEnd) this.#world.killed.push(record);
    return this.canEnd;
  }
}

function newHostWorld(): FakeHost['world'] {
  return { locks: new Map(), dead: new Set(), killed: [] };
}

/** One store in memory, one clock for everybody, clients, and as many workers as a test wants. */
export function workerWorld(hostWorld = newHostWorld(), declared: KindDeclarations = {}) {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const kinds = readKinds(declared);
  const played: Played[] = [];
  let actors = 0;

  /** A pipeline that runs until it is told to end, by its signal or by the test. */
  const playing =
    (worker: string): PipelineFunction =>
    (session, context) =>
      new Promise((resolve, reject) => {
        const part: Played = {
          ...{ session, context, worker, isOver: false },
          end: (result) => {
            part.isOver = true;
            resolve(result);
          },
          fail: (message) => {
            part.isOver = true;
            reject(new Error(message));
          },
        };
        played.push(part);
        context.signal.addEventListener('abort', () => part.end(), { once: true });
      });

  const worker = async (
    options: WorkerOptions = {},
    host?: Partial<FakeHost>,
    runner: Commands | null = null,
  ) => {
    const instanceId = `w${++actors}`;
    const { store: reached, faults } = faultyStore(store, clock);
    const events = new Emitter();
    const happened: WorkerActor['happened'] = [];
    for (const name of WATCHED)
      events.on(name, (facts: Events[typeof name]) => happened.push({ name, facts }));
    const random = seededRandom(actors);
    const shared = { store: reached, clock, random, events, instanceId, tracing: untraced };
    const leases = new Leases(shared, DEFAULT_MAX_TTLS);
    const own = Object.assign(new FakeHost(instanceId, hostWorld), host);
    const commands = () => {
      if (runner === null) throw new Error('there are no commands here');
      return runner;
    };
    const play = playing(instanceId);
    const environment = { host: own, prefix: '', kinds, commands };
    const pipelines = { live: play, vod: play };
    const made = new Worker(shared, leases, environment, { pipelines, ...options });
    return { worker: made, instanceId, faults, happened, host: own, leases, store: reached };
  };

  /** `instanceId`: of the worker in the same process, where there is one. */
  const api = (options: IntentOptions = {}, instanceId = `api${actors + 1}`) => {
    const shared = { store, clock, random: seededRandom(1_000 + ++actors), events: new Emitter() };
    return new Intents({ ...shared, instanceId, tracing: untraced }, options, kinds);
  };

  const door = api();
  const start = async (serviceRef: string, profile = 'hd', by = CLIENT) =>
    (await door.submit({ type: 'stream.start', serviceRef, profile }, by)).session.id;
  const submit = (intent: Intent, by = CLIENT) => door.submit(intent, by);
  const stop = (sessionId: string, by = CLIENT) =>
    door.submit({ type: 'stream.stop', sessionId }, by);
  const session = async (id: string): Promise<IntentSession> => {
    const [found] = await store.intents.read([id], CALL);
    if (!found) throw new Error(`there is no session ${id}`);
    return sessionOf(found);
  };
  const lease = async (key: string): Promise<ReadReply> => {
    const [found] = await store.leases.read([`lease:${key}`], CALL);
    if (found === undefined) throw new Error('no answer');
    return found;
  };
  /** Lets time pass until it is so, or fails. */
  const until = async <T>(condition: () => T | Promise<T>, what: string, mostMs = 120_000) => {
    for (let passedMs = 0; passedMs <= mostMs; passedMs += 10) {
      const found = await condition();
      if (found) return found;
      await clock.advance(10);
    }
    throw new Error(`it never was so: ${what}`);
  };
  const reaches = (id: string, state: IntentSession['state'], mostMs?: number) =>
    until(
      async () => {
        const found = await session(id);
        return found.state === state ? found : null;
      },
      `${id} is ${state}`,
      mostMs,
    );
  const settle = () => clock.advance(0);
  return {
    ...{ clock, store, worker, api, start, submit, stop, session, lease, until, reaches },
    ...{ played, settle, hostWorld },
  };
}
