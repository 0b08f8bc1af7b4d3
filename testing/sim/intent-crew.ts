/**
 * What one instance does with intents: the production `Intents` accepts what clients ask of it, and
 * looks from time to time for what was lost; the production `Worker` runs sessions of
 * all instances.
 */

import type { Emitter } from '../../src/core/events.ts';
import { untraced } from '../../src/core/tracing.ts';
import { type Accepted, Intents } from '../../src/intents/intents.ts';
import { readKinds } from '../../src/intents/kind.ts';
import type { SecretOptions } from '../../src/intents/secret-set.ts';
import { Leases } from '../../src/lease/leases.ts';
import { Retention } from '../../src/retention.ts';
import { DEFAULT_MAX_TTLS } from '../../src/store/port/keyspaces.ts';
import type { Store } from '../../src/store/port/store.ts';
import { Worker } from '../../src/worker/worker.ts';
import type { WorkerOptions } from '../../src/worker/worker-options.ts';
import type { Audit } from './audit.ts';
import type { Counters } from './counters.ts';
import type { Device } from './device.ts';
import type { SimProcess } from './host.ts';
import type { Gateway, IntentClients, IntentRequest } from './intent-clients.ts';
import { wantedOf } from './intent-record.ts';
import { SIM_KINDS } from './intent-sight.ts';
import { Pipelines, SIM_TRIES } from './pipelines.ts';
import { SimWorkerHost } from './worker-host.ts';

/** What all instances of a world know of intents. */
export interface IntentSetting {
  readonly clients: IntentClients;
  /**
   * `made`: nobody was given one. `changing`: some processes have a new one beside the old, and
   * some the old one only.
   */
  readonly secrets: 'one' | 'made' | 'changing';
  readonly ttlMs: number;
  /** Of its own leases, and of those that are taken as a start is accepted. */
  readonly longestTtlMs: number;
  /** How long a pipeline has to end once it is told to. */
  readonly graceMs: number;
  /** How many tuners there are; what plays recordings needs a slot of another pool, or none. */
  readonly tuners: number;
  readonly decks: number;
  /** How long a start waits for one. */
  readonly waitMs: number;
  /** Whether workers have names: then who is started again on its machine continues at once. */
  readonly hasNames: boolean;
  /** Whether the first two have the same, by mistake. */
  readonly isNameShared: boolean;
  /** The share of hints that get lost. */
  readonly deafness: number;
  /** Whether the lease of a channel is taken as its start is accepted. */
  readonly apiLeases: 'on' | 'off';
}

export interface IntentCrewParts {
  readonly setting: IntentSetting;
  readonly process: SimProcess;
  readonly store: Store;
  readonly events: Emitter;
  readonly audit: Audit;
  readonly counters: Counters;
  readonly device: Device;
  /** Aborts when the instance is told to stop. */
  readonly over: AbortSignal;
}

const OLD_SECRET = 'the secret that all processes of a simulated world know';
const NEW_SECRET = 'the secret that some processes of a simulated world know';
/** Long enough for a client to be late, and short enough for a world to see it. */
const KEEP_ENDED = '5m';
/** A worker whose name another has tries again after this. */
const NAME_AGAIN_MS = 1_000;
const STOP_WITHIN_MS = 10_000;
/** Shorter than the longest pipelines run. */
const TIME_LIMIT_MS = 20_000;

export class IntentCrew implements Gateway {
  readonly process: SimProcess;
  readonly #parts: IntentCrewParts;
  readonly #intents: Intents;
  readonly #retention: Retention;
  readonly #leases: Leases;
  readonly #pipelines: Pipelines;
  readonly #hire: () => Worker;
  #worker: Worker;
  /** Those before it. */
  readonly #replaced = new Set<Worker>();

  constructor(parts: IntentCrewParts) {
    const { process, setting, store, events } = parts;
    this.#parts = parts;
    this.process = process;
    const { random, name: instanceId } = process;
    const own = { store, events, clock: process, random, instanceId, tracing: untraced };
    const { apiLeases, graceMs } = setting;
    this.#pipelines = new Pipelines({ ...parts, graceMs });
    const [machine = ''] = process.name.split('.', 1);
    // Two processes of one name: whichever gets it takes the same kinds.
    const seat = setting.isNameShared && machine === 'i1' ? 'i0' : machine;
    const taken = takenKinds(seat);
    const kinds = readKinds({
      job: { run: this.#pipelines.ofKind(taken), tries: SIM_TRIES, timeLimit: TIME_LIMIT_MS },
      rare: { run: this.#pipelines.ofKind(taken), tries: SIM_TRIES },
    });
    this.#intents = new Intents(own, { ...this.#secrets(), apiLeases }, kinds);
    this.#retention = new Retention(own, { sessions: KEEP_ENDED });
    this.#leases = new Leases(own, store.leases.maxTtls ?? DEFAULT_MAX_TTLS);
    const host = new SimWorkerHost(process, machine);
    const environment = { host, prefix: '', kinds, commands: noCommands };
    const name = `worker-${seat}`;
    this.#hire = () =>
      new Worker(own, this.#leases, environment, { ...this.#options(name), kinds: taken });
    this.#worker = this.#hire();
  }

  /**
   * How many pipelines there are now that do not stop when they are told to, or that a worker has
   * left behind.
   */
  get deaf(): number {
    const left = [...this.#replaced].map(({ sessions }) => sessions);
    return left.reduce((sum, count) => sum + count, this.#pipelines.deaf);
  }

  start(): void {
    this.#intents.start();
    this.#retention.start();
    void this.#work();
    this.#parts.setting.clients.register(this);
  }

  async stop(): Promise<void> {
    const within = STOP_WITHIN_MS;
    const sweeping = [this.#intents.stop(), this.#retention.stop()];
    await Promise.all([...sweeping, this.#worker.stop({ within })]);
    await this.#leases.close(within);
  }

  receive({ intent, by, askedMs, signal, isGone, answer }: IntentRequest): void {
    const { over, audit } = this.#parts;
    const { process } = this;
    if (over.aborted) return;
    const isStop = intent.type === 'stream.stop' || intent.type === 'stop';
    if (!isStop) audit.intents?.received(process, by.client, isGone());
    const tell = (outcome: Accepted | Error) => {
      process.reach('answer');
      if (process.isDead) return;
      if (!(outcome instanceof Error) && !isStop) {
        const wanted = wantedOf(by.tenant ?? '', intent);
        audit.intents?.accepted({ session: outcome.session.id, wanted, askedMs });
      }
      answer(outcome);
    };
    void this.#intents.submit(intent, by, { signal }).then(tell, tell);
  }

  /**
   * As a program does that is told of other pipelines: its worker has so long to stop, then there
   * is another.
   */
  async replaceWorker(withinMs: number): Promise<void> {
    const { over, counters } = this.#parts;
    const worker = this.#worker;
    if (worker.state !== 'running') return;
    this.#replaced.add(worker);
    await worker.stop({ within: withinMs });
    if (worker.sessions > 0) counters.add('pipeline left behind');
    if (over.aborted) return;
    this.#worker = this.#hire();
    await this.#work();
  }

  /** Until it has begun. */
  async #work(): Promise<void> {
    const { over, counters } = this.#parts;
    while (!over.aborted) {
      try {
        await this.#worker.start();
        return;
      } catch {
        counters.add('worker refused');
        await this.process.sleep(NAME_AGAIN_MS, over).catch(() => {});
        if (!over.aborted) this.#worker = this.#hire();
      }
    }
  }

  #options(name: string): WorkerOptions {
    const { ttlMs: ttl, graceMs: grace, waitMs: wait, ...setting } = this.#parts.setting;
    const { tuners, decks, hasNames } = setting;
    const pipelines = this.#pipelines;
    const recordings = { run: pipelines.of('deck'), resource: 'decks' };
    return {
      ...(hasNames && { name }),
      ttl,
      grace,
      resources: {
        tuners: { slots: tuners, wait },
        ...(decks > 0 && { decks: { slots: decks, key: 'deck', wait } }),
      },
      pipelines: {
        live: pipelines.of('tuner'),
        vod: decks > 0 ? recordings : pipelines.of(null),
      },
    };
  }

  #secrets(): SecretOptions {
    const { secrets } = this.#parts.setting;
    if (secrets === 'made') return {};
    if (secrets === 'one' || this.process.random.next() < 0.5) return { secret: OLD_SECRET };
    return { secret: NEW_SECRET, previousSecret: OLD_SECRET };
  }
}

/** The first machine takes all kinds, and every second one leaves `rare` to the others. */
function takenKinds(machine: string): readonly string[] {
  const isOdd = Number(machine.slice(1)) % 2 === 1;
  return SIM_KINDS.filter((kind) => kind !== 'rare' || !isOdd);
}

function noCommands(): never {
  throw new Error('nothing but functions runs here');
}
