import { commandTasks } from './command-task.ts';
import { isDoneWithin } from './core/clock.ts';
import { type Duration, durationMs } from './core/duration.ts';
import { ClosedError, ConfigError } from './core/errors.ts';
import type { EventName, Listener } from './core/events.ts';
import { checkKey } from './core/ids.ts';
import { checkKnown, checkSwitch } from './core/options.ts';
import { untraced } from './core/tracing.ts';
import { Poller, type PollerOptions } from './fleet/poller.ts';
import { type CommandTaskOptions, Runner, type RunnerOptions } from './fleet/runner.ts';
import type { TargetIds } from './fleet/targets/target-record.ts';
import { TargetStore } from './fleet/targets/target-store.ts';
import { Fleet } from './fleet/watch/fleet.ts';
import { type IntentOptions, Intents } from './intents/intents.ts';
import { type Kind, readKinds } from './intents/kind.ts';
import type { Census } from './lease/census.ts';
import { Election, type ElectOptions } from './lease/election.ts';
import type { LeaseSet } from './lease/lease.ts';
import type { AcquireResult, HeldContext, Leases } from './lease/leases.ts';
import { type OnceOptions, type OnceResult, once } from './lease/once.ts';
import { type AcquireOptions, checkAcquireOptions } from './lease/options.ts';
import { Pool, type PoolOptions } from './lease/pool/pool.ts';
import { RemoteLeases } from './lease/remote-leases.ts';
import type { RevokeOptions, RevokeResult } from './lease/revocation.ts';
import { leaseAttributes, tracedAcquire, tracedWork } from './lease/spans.ts';
import { LEASE_CLASSES, type LeaseClassName } from './lease/timings.ts';
import { withLease } from './lease/with-lease.ts';
import { type OpenOptions, openLeases, type StoreArgument } from './opening.ts';
import { Records } from './records.ts';
import { Retention, type RetentionOptions } from './retention.ts';
import type { Examination } from './store/port/examination.ts';
import {
  KEYSPACE_NAMES,
  KEYSPACES,
  type MaxTtlOption,
  type MaxTtls,
  readMaxTtl,
} from './store/port/keyspaces.ts';
import type { LeasePage, ReadReply } from './store/port/lease-store.ts';
import type { Runtime } from './store/runtime.ts';
import { EventLog } from './telemetry/event-log.ts';
import { History } from './telemetry/history.ts';
import { supervisedCommands } from './worker/supervisor/commands.ts';
import type { HostLock } from './worker/supervisor/host.ts';
import { systemHost } from './worker/supervisor/system-host.ts';
import { Worker } from './worker/worker.ts';
import type { WorkerOptions } from './worker/worker-options.ts';
import { Processor } from './workflow/processor.ts';
import type { ProcessorOptions } from './workflow/processor-options.ts';
import type { ActionDefinitions } from './workflow/schema.ts';
import {
  type WorkflowCode,
  WorkflowFunction,
  type WorkflowFunctionOptions,
} from './workflow/workflow-function.ts';
import { Workflows } from './workflow/workflows.ts';

export type { OpenOptions } from './opening.ts';

export interface ListOptions {
  /**
   * Which leases. `lease` and `resource` share their keys; `poll` lists the leases of targets,
   * `workflow` those of workflows. Default `lease`.
   */
  class?: LeaseClassName | undefined;
}

/** One action of an operator, for the shared log. */
export interface OperatorAct {
  /** The action as `noun.verb`: `member.drain`, `lease.revoke`. */
  readonly action: string;
  /** The id or key that the operator acted on. */
  readonly subject: string;
  /** The instance that received something, as in a transfer. */
  readonly to?: string | null | undefined;
  /** The operator. Never a secret. */
  readonly by: string;
  readonly reason: string | null;
}

const KNOWN = new Set([
  'name',
  'prefix',
  'quarantine',
  'maxTtl',
  'sync',
  'observe',
  'create',
  'sessionIds',
  'kinds',
  'history',
  'on',
  'tls',
  'redis',
  'clock',
  'random',
]);
/** The keyspace of the leases that `acquire` takes by default. */
const KEYSPACE = LEASE_CLASSES.lease.keyspace;
/** The default time limit of `close`, for everything together. */
const DEFAULT_CLOSE_MS = 2_000;
/** The share of that for pollers, workers and processors. Then other leases are asked to stop. */
const STOP_SHARE = 3 / 4;
/** Reserved for late replies, the releases they need, and the log: a share, up to a maximum. */
const FINAL_REPLIES_SHARE = 1 / 10;
const MAX_FINAL_REPLIES_MS = 500;
/** The same for a `close` that does not wait for work. */
const MIN_CLOSE_MS = 1_000;
/** For calls without a lease, and so without timings of their own. */
const CALL = { timeoutMs: 5_000 };

/**
 * Opens a store, and everything that is built on it. Without an address it opens the embedded
 * store: `.holdfast/holdfast.db` in the working directory, or in the nearest folder above that has
 * one.
 */
export async function open(store?: StoreArgument, options: OpenOptions = {}): Promise<Holdfast> {
  checkKnown(options, KNOWN);
  const { history } = options;
  if (history !== undefined) checkSwitch(history, 'history');
  const kinds = readKinds(options.kinds);
  const { rt, leases, ownsStore } = await openLeases(store, options);
  return new Holdfast(rt, leases, {
    ownsStore,
    targetIds: options.sessionIds ?? 'any',
    kinds,
    history,
    prefix: options.prefix ?? '',
  });
}

/** What `open` decides beyond the runtime. */
interface HoldfastSettings {
  /** False for a store that the caller opened, and closes. */
  readonly ownsStore: boolean;
  readonly targetIds: TargetIds;
  readonly kinds: ReadonlyMap<string, Kind>;
  readonly history: 'on' | 'off' | undefined;
  readonly prefix: string;
}

/** One opened Holdfast: leases, and everything that is built on them. `open()` makes it. */
export class Holdfast implements AsyncDisposable {
  /**
   * Small JSON documents in the store. Each refuses a write with an older fence than it has seen.
   */
  readonly records: Records;
  /** The targets that the fleet shares: add, pause, resume, change and remove them here. */
  readonly targets: TargetStore;
  /** The instances that share the targets: watch and steer them here. */
  readonly fleet: Fleet;
  /** The log that all instances share: what happened, in one order. */
  readonly log: EventLog;
  /** Work of many steps. Each workflow has one writer. */
  readonly workflows: Workflows;
  readonly #rt: Runtime;
  readonly #leases: Leases;
  readonly #settings: HoldfastSettings;
  readonly #processors = new Set<Processor>();
  readonly #functions = new Set<WorkflowFunction>();
  readonly #intents = new Set<Intents>();
  readonly #retentions = new Set<Retention>();
  #worker: Worker | null = null;
  /** An instance is one member of the fleet: it polls or runs targets. */
  #fleetService: Poller | Runner | null = null;
  #history: History | null = null;
  #closing: Promise<void> | null = null;

  constructor(rt: Runtime, leases: Leases, settings: HoldfastSettings) {
    this.#rt = rt;
    this.#leases = leases;
    this.#settings = settings;
    this.records = new Records(rt.store.records);
    this.targets = new TargetStore(rt, settings.targetIds);
    this.fleet = new Fleet(rt, this.targets, settings.targetIds);
    this.log = new EventLog(rt);
    this.workflows = new Workflows(rt, leases);
    if (settings.history === 'on') this.#history = new History(rt);
  }

  /** The id of this process among those that share the store. It is new at every start. */
  get instanceId(): string {
    return this.#rt.instanceId;
  }

  /**
   * The targets that the fleet shares.
   *
   * @deprecated Use `targets`. A session is what an intent started.
   */
  get sessions(): TargetStore {
    return this.targets;
  }

  /** Leases of holders in other programs: what the HTTP API calls. This instance renews none. */
  get remoteLeases(): RemoteLeases {
    return new RemoteLeases(this.#rt, this.#leases);
  }

  /** The number of leases that this instance holds. */
  get held(): number {
    return this.#leases.held;
  }

  /** The held leases by class, and how soon the first would be lost. Reads every lease. */
  census(): Census {
    return this.#leases.census();
  }

  /** The number of sessions that the worker of this instance runs. */
  get running(): number {
    return this.#worker?.sessions ?? 0;
  }

  /** The name of the store, without secrets. */
  get storeName(): string {
    return this.#rt.store.name;
  }

  /** The pools of the worker of this instance. Empty without a worker. */
  get pools(): readonly Pool[] {
    return this.#worker?.pools ?? [];
  }

  /**
   * Tries to acquire the lease, and waits for it with `wait`. A key that is held is a result;
   * a store that fails is an exception.
   */
  acquire(key: string, options?: AcquireOptions): Promise<AcquireResult> {
    const { tracing } = this.#rt;
    if (tracing === untraced) return this.#leases.acquire(key, options);
    const acquire = () => this.#leases.acquire(key, options);
    return tracedAcquire(tracing, leaseAttributes(key, options), acquire);
  }

  /**
   * Acquires all of the keys, or none and throws `LEASE_HELD`. Throws `STORE_QUARANTINED` while the
   * store makes no grants.
   */
  async acquireAll(keys: readonly string[], options?: AcquireOptions): Promise<LeaseSet> {
    const attributes = leaseAttributes([...keys].join(' '), options);
    return this.#rt.tracing.run({ name: 'holdfast.acquire', attributes }, () =>
      this.#leases.acquireAll(keys, options),
    );
  }

  /**
   * Runs `work` while holding the lease. Throws `LEASE_HELD` if another holder has it, and
   * `STORE_QUARANTINED` while the store makes no grants.
   */
  withLease<T>(
    key: string,
    work: (held: HeldContext) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    const attributes = leaseAttributes(key, options);
    return tracedWork(this.#rt.tracing, attributes, work, (watched) =>
      withLease(this, key, watched, options ?? {}),
    );
  }

  /**
   * Runs `work` at most once in each period, in whichever process of the store comes first. A call
   * that does not run it says why: the job is done, runs elsewhere, or the store is in quarantine.
   */
  once<T>(
    key: string,
    options: OnceOptions,
    work: (held: HeldContext) => Promise<T> | T,
  ): Promise<OnceResult<T>> {
    return once(this.#rt, this, { key, options }, work);
  }

  /**
   * Competes for leadership until it is stopped, or this Holdfast is closed. At most one of all
   * processes that compete under a name leads at a time. One that loses the lead follows again.
   */
  elect(name: string, options: ElectOptions): Election {
    return new Election(this.#rt, this.#leases, name, options);
  }

  /**
   * Slots that all processes with a pool of this name share; each slot has one holder at a time.
   * Callers that wait are served in order within one `Pool`: make one, and use it everywhere in the
   * process.
   */
  pool(name: string, options: PoolOptions): Pool {
    return new Pool(this.#rt, this.#leases, name, options);
  }

  /**
   * Polls targets that all instances with a poller share; each target has one owner. Nothing
   * happens before `start()`. An instance has one poller or runner at a time.
   */
  poller(options: PollerOptions = {}): Poller {
    this.#checkOpen('poller', this.#fleetService);
    const poller = new Poller(this.#rt, this.#leases, this.#settings.targetIds, options);
    this.#fleetService = poller;
    this.#recordHistory();
    return poller;
  }

  /**
   * Runs a long-lived task for each target that all instances with a runner share; each target has
   * one owner. Nothing happens before `start()`. An instance has one runner or poller at a time.
   */
  runner(options: RunnerOptions): Runner {
    this.#checkOpen('runner', this.#fleetService);
    const environment = {
      targetIds: this.#settings.targetIds,
      commandTasks: (command: CommandTaskOptions) => commandTasks(this.#rt, command),
    };
    const runner = new Runner(this.#rt, this.#leases, environment, options);
    this.#fleetService = runner;
    this.#recordHistory();
    return runner;
  }

  /** Executes the actions of workflows in this process. Nothing happens before `start()`. */
  processor<A extends ActionDefinitions = ActionDefinitions>(
    options: ProcessorOptions<A>,
  ): Processor<A> {
    this.#checkOpen('processor');
    const processor = new Processor<A>(this.#rt, options);
    this.#processors.add(processor as Processor);
    return processor;
  }

  /**
   * A workflow as a function. After a crash another instance runs the same lines, and continues
   * where the steps end. Nothing runs here before `run()`.
   */
  workflow<Input, Output, A extends ActionDefinitions = ActionDefinitions, S = unknown>(
    name: string,
    code: WorkflowCode<Input, Output, A, S>,
    options: WorkflowFunctionOptions<A> = {},
  ): WorkflowFunction<Input, Output, A, S> {
    this.#checkOpen('workflow');
    const named = { ...options, name };
    const made = new WorkflowFunction(this.#rt, this.workflows, code, named);
    this.#functions.add(made as WorkflowFunction);
    return made;
  }

  /**
   * Accepts requests to start and stop sessions. The store has every accepted request. `start()`
   * also restores those that the store lost.
   */
  intents(options: IntentOptions = {}): Intents {
    this.#checkOpen('intents');
    const intents = new Intents(this.#rt, options, this.#settings.kinds);
    this.#intents.add(intents);
    this.#recordHistory();
    return intents;
  }

  /**
   * Runs sessions that intents started in this process, while it holds their leases. Nothing
   * happens before `start()`. An instance has one worker at a time.
   */
  worker(options: WorkerOptions = {}): Worker {
    this.#checkOpen('worker', this.#worker);
    const { clock } = this.#rt;
    const { prefix, kinds } = this.#settings;
    const commands = (lock: HostLock | null) => supervisedCommands(clock, { lock });
    const environment = { host: systemHost, prefix, kinds, commands };
    this.#worker = new Worker(this.#rt, this.#leases, environment, options);
    this.#recordHistory();
    return this.#worker;
  }

  /** Removes old sessions, dead letters and log entries of the whole store, after `start()`. */
  retention(options: RetentionOptions = {}): Retention {
    this.#checkOpen('retention');
    const retention = new Retention(this.#rt, options);
    this.#retentions.add(retention);
    return retention;
  }

  /** Ends a lease. The key stays blocked until its old holder can no longer act. */
  revoke(key: string, options: RevokeOptions): Promise<RevokeResult> {
    return this.#leases.revoke(key, options);
  }

  /** The holder of a key now, according to the store. */
  async inspect(key: string): Promise<ReadReply> {
    checkKey(key);
    const [reply] = await this.#rt.store.leases.read([KEYSPACE + key], CALL);
    if (reply === undefined || reply.kind === 'failed')
      throw reply?.error ?? new ClosedError({ operation: 'inspect' });
    return reply;
  }

  /** The leases in the store, page by page. It walks the keyspace: for people, not for loops. */
  async list(cursor?: string, { class: name = 'lease' }: ListOptions = {}): Promise<LeasePage> {
    checkAcquireOptions({ class: name });
    const { keyspace } = LEASE_CLASSES[name];
    const call = cursor === undefined ? CALL : { ...CALL, cursor };
    const page = await this.#rt.store.leases.list(keyspace, call);
    return {
      ...page,
      leases: page.leases.map((lease) => ({ ...lease, key: lease.key.slice(keyspace.length) })),
    };
  }

  /** The longest TTLs, as the store has recorded them. Empty before its first use. */
  maxTtl(): Promise<Partial<MaxTtls>> {
    return this.#rt.store.bounds?.read(CALL) ?? Promise.resolve({});
  }

  /**
   * Replaces the longest TTLs in the store. Refused while a lease is held, so stop every process of
   * the store first. Afterwards the store refuses processes with other bounds, and makes no grants
   * for the new bound and a second.
   */
  async changeMaxTtl(to: MaxTtlOption): Promise<MaxTtls> {
    const maxTtls = readMaxTtl(to);
    const { leases, bounds } = this.#rt.store;
    for (const keyspace of KEYSPACE_NAMES) {
      const { leases: held } = await leases.list(KEYSPACES[keyspace], CALL);
      const [first] = held;
      if (first === undefined) continue;
      const rule =
        `it cannot change while leases are held, and '${first.key}' is held by ${first.holder}. ` +
        'Stop every process of this store, and wait until their leases have expired';
      throw new ConfigError({ field: 'maxTtl', value: to, rule });
    }
    await bounds?.change(maxTtls, CALL);
    return maxTtls;
  }

  /** Writes an action of an operator into the shared log, and does nothing else. */
  audit({ to = null, ...act }: OperatorAct): void {
    this.#recordHistory();
    this.#rt.events.emit('operator.acted', { ...act, to });
  }

  /** Checks whether the store is fit for leases. */
  examine(): Promise<Examination> {
    return this.#rt.store.examine();
  }

  /** Subscribes to an event of this instance. Returns the function that unsubscribes. */
  on<N extends EventName>(name: N, listener: Listener<N>): () => void {
    return this.#rt.events.on(name, listener);
  }

  /**
   * Ends waiting, asks work under leases to stop, and waits for it to release them. `close` takes
   * at most `within` (2 s; never less than one second), even if the store does not answer. Leases
   * that are not released by then expire: work that may still continue is never handed over.
   */
  close({ within = DEFAULT_CLOSE_MS }: { within?: Duration | undefined } = {}): Promise<void> {
    const withinMs = durationMs(within, 'within');
    this.#closing ??= this.#close(withinMs);
    return this.#closing;
  }

  /**
   * Refuses a new service after `close`, and a second one of which an instance has one at a time.
   */
  #checkOpen(what: string, current: { readonly state: string } | null = null): void {
    if (this.#closing !== null) throw new ClosedError({ operation: what });
    if (current === null || current.state === 'stopped') return;
    const has = current instanceof Runner ? 'a runner' : 'one';
    const rule = `this instance has ${has} already; stop it first, or open another Holdfast`;
    throw new ConfigError({ field: what, value: this.instanceId, rule });
  }

  #recordHistory(): void {
    if (this.#settings.history !== 'off') this.#history ??= new History(this.#rt);
  }

  async #close(withinMs: number): Promise<void> {
    const { clock, store } = this.#rt;
    const startMs = clock.monotonicMs();
    const endMs = startMs + Math.max(withinMs, MIN_CLOSE_MS);
    const finalRepliesMs = Math.min(withinMs * FINAL_REPLIES_SHARE, MAX_FINAL_REPLIES_MS);
    const workEndMs = startMs + withinMs - finalRepliesMs;
    const leftMs = (atMs: number) => Math.max(0, atMs - clock.monotonicMs());
    this.fleet.close();
    await isDoneWithin(clock, withinMs * STOP_SHARE, this.#stopAll(withinMs * STOP_SHARE));
    const sweeping = [...this.#intents, ...this.#retentions].map((sweeper) => sweeper.stop());
    const closing = Promise.all([this.workflows.close(), ...sweeping]);
    await isDoneWithin(clock, leftMs(workEndMs), closing);
    await this.#leases.close(leftMs(workEndMs), leftMs(endMs));
    await this.#history?.close(leftMs(endMs));
    if (this.#settings.ownsStore) await store.close();
  }

  async #stopAll(withinMs: number): Promise<void> {
    // A processor waits twice: for its handlers to end, and for them to stop when told to.
    const processors = [...this.#processors].map((one) => one.stop({ within: withinMs / 2 }));
    const within = { within: withinMs };
    const functions = [...this.#functions].map((one) => one.stop({ within: withinMs / 2 }));
    await Promise.all([
      this.#fleetService?.stop(within),
      this.#worker?.stop(within),
      ...processors,
      ...functions,
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
