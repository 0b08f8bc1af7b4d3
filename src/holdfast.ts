import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { type Clock, isDoneWithin, systemClock } from './core/clock.ts';
import { type Duration, durationMs } from './core/duration.ts';
import { ClosedError, ConfigError, StoreUnsuitableError } from './core/errors.ts';
import { Emitter, type EventName, type Listener } from './core/events.ts';
import { checkKey, instanceId } from './core/ids.ts';
import { checkKnown, checkSwitch } from './core/options.ts';
import { type Random, systemRandom } from './core/random.ts';
import { untraced } from './core/tracing.ts';
import { Poller, type PollerOptions } from './fleet/poller.ts';
import type { SessionIds } from './fleet/targets/target-record.ts';
import { TargetStore } from './fleet/targets/target-store.ts';
import { Fleet } from './fleet/watch/fleet.ts';
import { type IntentOptions, Intents } from './intents/intents.ts';
import { LEASE_CLASSES, type LeaseClassName } from './lease/classes.ts';
import { Election, type ElectOptions } from './lease/election.ts';
import { type Census, censusOf } from './lease/held-stats.ts';
import type { LeaseSet } from './lease/lease.ts';
import { type AcquireResult, type HeldContext, Leases } from './lease/leases.ts';
import { type AcquireOptions, checkAcquireOptions } from './lease/options.ts';
import { Pool, type PoolOptions } from './lease/pool/pool.ts';
import type { RevokeOptions, RevokeResult } from './lease/revocation.ts';
import { TracedLeases } from './lease/traced-leases.ts';
import { Records } from './records.ts';
import { Retention, type RetentionOptions } from './retention.ts';
import { openStore } from './store/open-store.ts';
import type { Examination } from './store/port/examination.ts';
import {
  boundsProblem,
  KEYSPACE_NAMES,
  KEYSPACES,
  type MaxTtlOption,
  type MaxTtls,
  readMaxTtl,
} from './store/port/keyspaces.ts';
import type { LeasePage, ReadReply } from './store/port/lease-store.ts';
import type { Store } from './store/port/store.ts';
import type { AdoptableClient } from './store/redis/client/adoptable.ts';
import type { Runtime } from './store/runtime.ts';
import { EventLog } from './telemetry/event-log.ts';
import { History } from './telemetry/history.ts';
import { findTracing } from './telemetry/open-telemetry.ts';
import { supervisedCommands } from './worker/supervisor/commands.ts';
import type { HostLock } from './worker/supervisor/host.ts';
import { systemHost } from './worker/supervisor/system-host.ts';
import { Worker } from './worker/worker.ts';
import type { WorkerOptions } from './worker/worker-options.ts';
import { Processor } from './workflow/processor.ts';
import type { ProcessorOptions } from './workflow/processor-options.ts';
import type { ActionDefinitions } from './workflow/schema.ts';
import { Workflows } from './workflow/workflows.ts';

export interface OpenOptions {
  /** The readable part of this instance's id; default the host's name. */
  name?: string;
  /** Put before every key in the store; default none. */
  prefix?: string;
  /** `off` only where a second owner for one TTL after a restart of the store does no harm. */
  quarantine?: 'on' | 'off';
  /**
   * How long leases may last without a renewal: one bound for all keyspaces, or one for each. Default
   * `{ lease: '30s', poll: '30s', workflow: '5m' }`. Every process of a store needs the same: after the store has lost data, no new
   * lease is granted for this long and a second. A shorter bound means a shorter quarantine.
   */
  maxTtl?: MaxTtlOption;
  /**
   * SQLite only. When records, streams, workflows, intents and the log are on the disk, so that a loss of power does not take them: within
   * a second (`everysec`, the default), or before the caller has an answer (`always`).
   */
  sync?: 'everysec' | 'always';
  /** Looks and steers, but takes no lease: such a process need not know the bounds of the store. */
  observe?: boolean;
  /** `false`: a SQLite file that does not exist is an error (`STORE_UNREACHABLE`), and is not made. Default `true`. */
  create?: boolean;
  /** `uuid`: only UUIDs may name sessions; default `any` safe id. */
  sessionIds?: SessionIds;
  /** Whether what happens here is written into the log that all instances share; default: where there is a poller, or intents are accepted. */
  history?: 'on' | 'off';
  /** Listeners that are there from the start: what happens while the store is opened is over when `open` resolves. */
  on?: { [N in EventName]?: Listener<N> };
  /** For rediss URLs: what `node:tls` needs beyond the host's own certificates. */
  tls?: TlsOptions;
  clock?: Clock;
  random?: Random;
}

export interface ListOptions {
  /** Whose leases: `lease` and `resource` share their keys; `poll` has those of targets, `workflow` those of workflows. Default `lease`. */
  class?: LeaseClassName;
}

/** Something that somebody has had done. */
export interface OperatorAct {
  /** What, as `noun.verb`: `member.drain`, `lease.revoke`. */
  readonly action: string;
  /** To what: the id, the key. */
  readonly subject: string;
  /** To whom something goes by it. */
  readonly to?: string | null;
  /** Who: never a secret. */
  readonly by: string;
  readonly reason: string | null;
}

const KNOWN = new Set([
  ...['name', 'prefix', 'quarantine', 'maxTtl', 'observe', 'sessionIds', 'history', 'on', 'tls'],
  ...['sync', 'clock', 'random', 'create'],
]);
/** Of the leases that `acquire` takes unless told otherwise. */
const KEYSPACE = LEASE_CLASSES.lease.keyspace;
/** How long `close` takes at most, work that does not stop included. */
const DEFAULT_CLOSE_MS = 2_000;
/** The share of that for pollers, workers and processors to stop, before the work under other leases is told to. */
const STOP_SHARE = 3 / 4;
/** Kept of that time to hear the last answers, give back what they granted, and write the log: a share of it, and at most this. */
const LAST_WORDS_SHARE = 1 / 10;
const LAST_WORDS_MOST_MS = 500;
/** A `close` that waits for no work may take this long for that. */
const LAST_WORDS_MS = 1_000;
/** For what has no lease, and so no timings of its own. */
const CALL = { timeoutMs: 5_000 };

/**
 * Opens a store and what is built on it. Without an address that is the embedded one: `.holdfast/holdfast.db`, in the
 * working directory or the nearest one above it that has it.
 */
export async function open(
  store?: string | AdoptableClient | Store,
  options: OpenOptions = {},
): Promise<Holdfast> {
  checkKnown(options, KNOWN);
  const { clock = systemClock, random = systemRandom, observe = false } = options;
  const maxTtls = readMaxTtl(options.maxTtl);
  const events = new Emitter();
  for (const [name, listener] of Object.entries(options.on ?? {}))
    events.on(name as EventName, listener as Listener<EventName>);
  const { prefix, quarantine, sync, tls, history, create } = options;
  if (history !== undefined) checkSwitch(history, 'history');
  const opened = await openStore(store, {
    clock,
    random,
    events,
    ...(prefix !== undefined && { prefix }),
    ...(quarantine && { quarantine }),
    ...(sync !== undefined && { sync }),
    maxTtls: observe ? null : maxTtls,
    ...(tls && { tls }),
    ...(create !== undefined && { create }),
  });
  const id = instanceId(random, clock.startedAtMs, options.name);
  const tracing = await findTracing();
  const bounds = opened.owned ? maxTtls : boundsOf(opened.store, options.maxTtl, maxTtls);
  const rt: Runtime = { store: opened.store, clock, random, events, tracing, instanceId: id };
  const leases = new Leases({ ...rt, maxTtls: observe ? null : bounds });
  return new Holdfast({
    ...rt,
    ownsStore: opened.owned,
    leases,
    sessionIds: options.sessionIds ?? 'any',
    history,
    prefix: prefix ?? '',
  });
}

/** The bounds of a store that was opened by the caller; refuses a `maxTtl` that says otherwise. */
function boundsOf(store: Store, given: MaxTtlOption | undefined, own: MaxTtls): MaxTtls {
  const { maxTtls } = store.leases;
  const problem = given === undefined || maxTtls === undefined ? null : boundsProblem(maxTtls, own);
  if (problem !== null) throw new StoreUnsuitableError({ store: store.name, problems: [problem] });
  return maxTtls ?? own;
}

interface HoldfastParts extends Runtime {
  readonly ownsStore: boolean;
  readonly leases: Leases;
  readonly sessionIds: SessionIds;
  readonly history: 'on' | 'off' | undefined;
  readonly prefix: string;
}

export class Holdfast implements AsyncDisposable {
  /** Small JSON documents in the store that refuse writes with an older fence than they have seen. */
  readonly records: Records;
  /** What there is to poll, and to run: added, paused, resumed and removed here, by the CLI or by other programs. */
  readonly sessions: TargetStore;
  /** Who shares the sessions out among them, for those who watch and steer it. */
  readonly fleet: Fleet;
  /** What has happened to all instances that write it down, in one order. */
  readonly log: EventLog;
  /** Work of many steps, each workflow with one writer. */
  readonly workflows: Workflows;
  readonly #parts: HoldfastParts;
  readonly #doors: Pick<Leases, 'acquire' | 'acquireAll' | 'withLease'>;
  readonly #processors = new Set<Processor>();
  readonly #intents = new Set<Intents>();
  readonly #retentions = new Set<Retention>();
  #worker: Worker | null = null;
  #poller: Poller | null = null;
  #history: History | null = null;
  #closing: Promise<void> | null = null;

  constructor(parts: HoldfastParts) {
    this.#parts = parts;
    const { leases, tracing } = parts;
    this.#doors = tracing === untraced ? leases : new TracedLeases(leases, tracing);
    this.records = new Records(parts.store.records);
    this.sessions = new TargetStore({ ...parts, ids: parts.sessionIds });
    this.fleet = new Fleet({ ...parts, sessions: this.sessions });
    this.log = new EventLog(parts);
    this.workflows = new Workflows(parts);
    if (parts.history === 'on') this.#history = new History(parts);
  }

  /** This process among the others that share the store; new at every start. */
  get instanceId(): string {
    return this.#parts.instanceId;
  }

  /** How many leases this instance holds. */
  get held(): number {
    return this.#parts.leases.kept.size;
  }

  /** The same by class, with how long it would be until the first is lost. Looks at every lease. */
  census(): Census {
    const { leases, clock } = this.#parts;
    return censusOf(leases.kept.tenures(), clock.monotonicMs());
  }

  /** How many sessions its worker has in hands. */
  get running(): number {
    return this.#worker?.sessions ?? 0;
  }

  /** What the store is called, without anything secret. */
  get storeName(): string {
    return this.#parts.store.name;
  }

  /** The pools of its worker; none where there is no worker. */
  get pools(): readonly Pool[] {
    return this.#worker?.pools ?? [];
  }

  /** Tries to get the lease, and waits for it if asked to. Contention is a result; a broken store is an exception. */
  acquire(key: string, options?: AcquireOptions): Promise<AcquireResult> {
    return this.#doors.acquire(key, options);
  }

  /** All of the keys, or none and `LEASE_HELD`; `STORE_QUARANTINED` if the store grants nothing now. */
  acquireAll(keys: readonly string[], options?: AcquireOptions): Promise<LeaseSet> {
    return this.#doors.acquireAll(keys, options);
  }

  /** Runs `work` while holding the lease; throws `LEASE_HELD` if another has it, `STORE_QUARANTINED` if the store grants nothing now. */
  withLease<T>(
    key: string,
    work: (held: HeldContext) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    return this.#doors.withLease(key, work, options);
  }

  /**
   * Competes for leadership until it is stopped, or this is closed. One process of all that compete under a name leads at
   * a time; one that loses it follows again.
   */
  elect(name: string, options: ElectOptions): Election {
    return new Election(this.#parts, name, options);
  }

  /**
   * Slots that all who open a pool of this name share, each held by one at a time. Those who wait keep their order if they wait through
   * the same pool: make one, and use it everywhere in the process.
   */
  pool(name: string, options: PoolOptions): Pool {
    return new Pool(this.#parts, name, options);
  }

  /**
   * Polls targets that all instances with a poller share, each polled by one. Nothing happens before `start()`. One at a
   * time: an instance takes part in the fleet once.
   */
  poller(options: PollerOptions = {}): Poller {
    this.#checkOpen('poller', this.#poller);
    this.#poller = new Poller(this.#parts, options);
    this.#record();
    return this.#poller;
  }

  /** Does what workflows want done, in this process. Nothing happens before `start()`. */
  processor<A extends ActionDefinitions = ActionDefinitions>(
    options: ProcessorOptions<A>,
  ): Processor<A> {
    this.#checkOpen('processor');
    const processor = new Processor<A>(this.#parts, options);
    this.#processors.add(processor as Processor);
    return processor;
  }

  /**
   * Accepts what clients want to have started and stopped. What it accepts is safe in the store; `start()` of it keeps it so, should
   * the store lose some.
   */
  intents(options: IntentOptions = {}): Intents {
    this.#checkOpen('intents');
    const intents = new Intents(this.#parts, options);
    this.#intents.add(intents);
    this.#record();
    return intents;
  }

  /**
   * Runs what intents have started, in this process, while it holds the leases that this needs. Nothing happens before `start()`. One at a
   * time: what it holds is told apart by instance.
   */
  worker(options: WorkerOptions = {}): Worker {
    this.#checkOpen('worker', this.#worker);
    const { clock } = this.#parts;
    const commands = (lock: HostLock | null) =>
      supervisedCommands({ clock, ...(lock !== null && { lock }) });
    this.#worker = new Worker({ ...this.#parts, host: systemHost, commands }, options);
    this.#record();
    return this.#worker;
  }

  /** Forgets what has been kept for long enough, in the whole store. Nothing happens before `start()`. */
  retention(options: RetentionOptions = {}): Retention {
    this.#checkOpen('retention');
    const retention = new Retention(this.#parts, options);
    this.#retentions.add(retention);
    return retention;
  }

  /** Takes a lease away from whoever holds it. */
  revoke(key: string, options: RevokeOptions): Promise<RevokeResult> {
    return this.#parts.leases.revoke(key, options);
  }

  /** Who holds a key now, according to the store. */
  async inspect(key: string): Promise<ReadReply> {
    checkKey(key);
    const [reply] = await this.#parts.store.leases.read([KEYSPACE + key], CALL);
    if (reply === undefined || reply.kind === 'failed')
      throw reply?.error ?? new ClosedError({ operation: 'inspect' });
    return reply;
  }

  /** The leases in the store, a page at a time; walks the keyspace, so it is for people, not for loops. */
  async list(cursor?: string, { class: name = 'lease' }: ListOptions = {}): Promise<LeasePage> {
    checkAcquireOptions({ class: name });
    const { keyspace } = LEASE_CLASSES[name];
    const page = await this.#parts.store.leases.list(keyspace, {
      ...CALL,
      ...(cursor !== undefined && { cursor }),
    });
    return {
      ...page,
      leases: page.leases.map((lease) => ({ ...lease, key: lease.key.slice(keyspace.length) })),
    };
  }

  /** How long leases may last, as the store has recorded it; empty before its first use. */
  maxTtl(): Promise<Partial<MaxTtls>> {
    return this.#parts.store.bounds?.read(CALL) ?? Promise.resolve({});
  }

  /**
   * Replaces what the store has recorded, for a store that no process uses: refused while a lease is held. Processes with other
   * bounds are refused from then on, and nothing is granted for the new bound and a second.
   */
  async changeMaxTtl(to: MaxTtlOption): Promise<MaxTtls> {
    const maxTtls = readMaxTtl(to);
    const { leases, bounds } = this.#parts.store;
    for (const keyspace of KEYSPACE_NAMES) {
      const { leases: held } = await leases.list(KEYSPACES[keyspace], CALL);
      const [first] = held;
      if (first === undefined) continue;
      const rule = `'${first.key}' is held by ${first.holder}, maybe more. Stop every process of this store first, and wait until their leases have expired`;
      throw new ConfigError({ field: 'maxTtl', value: to, rule });
    }
    await bounds?.change(maxTtls, CALL);
    return maxTtls;
  }

  /** Writes down what an operator has had done, for whoever asks later. It does nothing else. */
  audit({ to = null, ...act }: OperatorAct): void {
    this.#record();
    this.#parts.events.emit('operator.acted', { ...act, to });
  }

  /** What to know about the store before trusting it. */
  examine(): Promise<Examination> {
    return this.#parts.store.examine();
  }

  /** Subscribes to what happens here; the function returned unsubscribes. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    return this.#parts.events.on(name, listener);
  }

  /**
   * Ends waiting, asks work under leases to stop, and waits for it to release them. It has closed after `within` (2 s; with less than a
   * second, after a second), even if the store does not answer. What is not released by then expires: work that may still
   * continue is never handed over.
   */
  close({ within = DEFAULT_CLOSE_MS }: { within?: Duration } = {}): Promise<void> {
    const withinMs = durationMs(within, 'within');
    this.#closing ??= this.#close(withinMs);
    return this.#closing;
  }

  /** Whether something more may run here; `one`: of what there is one at a time, the last. */
  #checkOpen(what: string, one: { readonly state: string } | null = null): void {
    if (this.#closing !== null) throw new ClosedError({ operation: what });
    if (one === null || one.state === 'stopped') return;
    const rule = 'this instance has one already; stop it first, or open another Holdfast';
    throw new ConfigError({ field: what, value: this.instanceId, rule });
  }

  /** What happens here is for all to see, unless that is not wanted. */
  #record(): void {
    if (this.#parts.history !== 'off') this.#history ??= new History(this.#parts);
  }

  async #close(withinMs: number): Promise<void> {
    const { clock, leases } = this.#parts;
    const untilMs = clock.monotonicMs() + Math.max(withinMs, LAST_WORDS_MS);
    const workUntilMs =
      clock.monotonicMs() + withinMs - Math.min(withinMs * LAST_WORDS_SHARE, LAST_WORDS_MOST_MS);
    const leftMs = (atMs: number) => Math.max(0, atMs - clock.monotonicMs());
    this.fleet.close();
    await isDoneWithin(clock, withinMs * STOP_SHARE, this.#stopAll(withinMs * STOP_SHARE));
    const sweeping = [...this.#intents, ...this.#retentions].map((sweeper) => sweeper.stop());
    const closing = Promise.all([this.workflows.close(), ...sweeping]);
    await isDoneWithin(clock, leftMs(workUntilMs), closing);
    await leases.close(leftMs(workUntilMs), leftMs(untilMs));
    await this.#history?.close(leftMs(untilMs));
    if (this.#parts.ownsStore) await this.#parts.store.close();
  }

  async #stopAll(withinMs: number): Promise<void> {
    // A processor waits twice: for its handlers to end, and for them to stop when they are told to.
    const processors = [...this.#processors].map((one) => one.stop({ within: withinMs / 2 }));
    const within = { within: withinMs };
    await Promise.all([this.#poller?.stop(within), this.#worker?.stop(within), ...processors]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
