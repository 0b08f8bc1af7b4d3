import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { type Clock, systemClock } from '../../core/clock.ts';
import { StoreUnsuitableError } from '../../core/errors.ts';
import { Emitter } from '../../core/events.ts';
import { Loop } from '../../core/loop.ts';
import { checkSwitch } from '../../core/options.ts';
import { type Random, systemRandom } from '../../core/random.ts';
import type { BaseRuntime } from '../../core/runtime.ts';
import type { CopyStore } from '../port/copy-store.ts';
import type { Examination } from '../port/examination.ts';
import type { GuardStore } from '../port/guard-store.ts';
import { DEFAULT_MAX_TTLS, type MaxTtls } from '../port/keyspaces.ts';
import { checkPrefix } from '../port/prefix.ts';
import type { Store } from '../port/store.ts';
import { DEFAULT_SCHEMA, type PostgresAddress, parseAddress } from './address.ts';
import type { AdoptablePostgres } from './adoptable.ts';
import { adoptedDialer, type PostgresDialer, type PostgresLink, urlDialer } from './dialer.ts';
import { judge, problemsOf, readFacts, type ServerFacts } from './examination.ts';
import { readHealth } from './health.ts';
import { ensureInstalled } from './installation.ts';
import { PostgresConnection } from './postgres-connection.ts';
import { PostgresQuarantine } from './postgres-quarantine.ts';
import { guardStatement, keepStatement, statement } from './statement.ts';
import { postgresBounds } from './verbs/bounds.ts';
import { postgresCopies } from './verbs/copies.ts';
import { FunctionConnection } from './verbs/function-connection.ts';
import { postgresIntents } from './verbs/intents.ts';
import { PostgresLeases } from './verbs/leases.ts';
import { postgresLog } from './verbs/log.ts';
import { postgresMembers } from './verbs/members.ts';
import { postgresRecords } from './verbs/records.ts';
import { keepRequest, postgresRuns } from './verbs/runs.ts';
import { PostgresSignals } from './verbs/signals.ts';
import { postgresStreams } from './verbs/streams.ts';
import { postgresWorkflows } from './verbs/workflows.ts';

export interface PostgresStoreOptions {
  /** Put before every name; default none. Stores with the same prefix share their leases. */
  prefix?: string | undefined;
  /** `off` only for development and tests: after a failover a lease may have two holders. */
  quarantine?: 'on' | 'off' | undefined;
  /** The bound of TTLs per keyspace, equal in every process. Null for an observer. */
  maxTtls?: MaxTtls | null | undefined;
  /** False: a database without the schema is an error. Default true: it is installed. */
  create?: boolean | undefined;
  /** For a copy alone: also a schema with an unfinished copy. */
  unfinished?: boolean | undefined;
  /** What `node:tls` needs beyond what the address says. */
  tls?: TlsOptions | undefined;
  /** The schema, where a client is given instead of an address. Default `holdfast`. */
  schema?: string | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
  events?: Emitter | undefined;
}

/** The timeout of opening and examining. */
const OPEN_MS = 10_000;
/** Connections for work, each opened when the others are busy. Leases have one of their own. */
const MAX_WORK_CONNECTIONS = 3;
/** How often expired rows are removed. */
const SWEEP_MS = 60_000;
const SWEEP_TIMEOUT_MS = 10_000;

/**
 * Opens a PostgreSQL database, by its address or as a client of the user reaches it. Installs the
 * schema where it is missing, and examines the server, before it resolves.
 */
export async function openPostgresStore(
  from: string | AdoptablePostgres,
  options: PostgresStoreOptions = {},
): Promise<Store> {
  const rt = {
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    events: options.events ?? new Emitter(),
  };
  const { prefix = '', quarantine = 'on' } = options;
  checkSwitch(quarantine, 'quarantine');
  checkPrefix(prefix);
  const address = typeof from === 'string' ? parseAddress(from) : adoptedAddress(options.schema);
  const dialer = await (typeof from === 'string'
    ? urlDialer(address.urls, address.listenUrl, options.tls)
    : adoptedDialer(from));
  const store = new PostgresStore(rt, address, dialer, { ...options, prefix, quarantine });
  await store.open().catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  return store;
}

function adoptedAddress(schema = DEFAULT_SCHEMA): PostgresAddress {
  return parseAddress(`postgres:///?schema=${schema}`);
}

class PostgresStore implements Store {
  readonly name: string;
  readonly leases: PostgresLeases;
  readonly members: Store['members'];
  readonly signals: PostgresSignals;
  readonly records: Store['records'];
  readonly log: Store['log'];
  readonly streams: Store['streams'];
  readonly workflows: Store['workflows'];
  readonly intents: Store['intents'];
  readonly runs: Store['runs'];
  readonly bounds: NonNullable<Store['bounds']>;
  readonly guard: GuardStore;
  readonly copies: CopyStore;
  readonly #rt: BaseRuntime;
  readonly #address: PostgresAddress;
  readonly #dialer: PostgresDialer;
  readonly #options: PostgresStoreOptions;
  readonly #quarantine: PostgresQuarantine;
  readonly #leaseConnection: PostgresConnection;
  readonly #workConnection: PostgresConnection;
  readonly #workConnections: readonly PostgresConnection[];
  readonly #hintConnection: PostgresConnection;
  readonly #sweeps: Loop;
  #sweptTo = '';

  constructor(
    rt: BaseRuntime,
    address: PostgresAddress,
    dialer: PostgresDialer,
    options: PostgresStoreOptions,
  ) {
    const { name, schema, standbys } = address;
    const { prefix = '', quarantine = 'on', maxTtls = DEFAULT_MAX_TTLS } = options;
    this.name = name;
    this.#rt = rt;
    this.#address = address;
    this.#dialer = dialer;
    this.#options = options;
    this.#quarantine = new PostgresQuarantine(rt, name, { quarantine, maxTtls, standbys });
    const connection = (make: (timeoutMs: number) => Promise<PostgresLink>) =>
      new PostgresConnection(rt, name, make);
    this.#leaseConnection = connection((timeoutMs) => this.#makeLink(timeoutMs));
    this.#workConnections = Array.from({ length: MAX_WORK_CONNECTIONS }, () =>
      connection((timeoutMs) => this.#makeLink(timeoutMs)),
    );
    const [work] = this.#workConnections as [PostgresConnection];
    this.#workConnection = work;
    this.#hintConnection = connection((timeoutMs) => this.#makeHintLink(timeoutMs));
    this.signals = new PostgresSignals(rt, this.#hintConnection, work, {
      store: name,
      schema,
      prefix,
    });
    const functions = (over: readonly PostgresConnection[]) =>
      new FunctionConnection(over, schema, prefix, (sent) => this.signals.send(sent));
    const leaseFunctions = functions([this.#leaseConnection]);
    const workFunctions = functions(this.#workConnections);
    this.leases = new PostgresLeases(leaseFunctions, workFunctions, this.#quarantine, name);
    this.members = postgresMembers(workFunctions);
    this.records = postgresRecords(workFunctions);
    this.log = postgresLog(workFunctions);
    this.streams = postgresStreams(workFunctions);
    this.workflows = postgresWorkflows(workFunctions, this.#quarantine);
    this.intents = postgresIntents(workFunctions);
    this.runs = postgresRuns(workFunctions);
    this.guard = {
      sql: (key, fence) => guardStatement(schema, prefix + key, fence),
      keepSql: (workflow, step) => {
        const request = keepRequest(workflow, { ...step, isDone: true });
        return keepStatement(schema, { scope: prefix, ...request });
      },
    };
    this.copies = postgresCopies(workFunctions);
    this.bounds = postgresBounds(work, schema, this.#quarantine);
    const round = () => this.#sweep();
    const quietly = { onStalled: () => {}, onResumed: () => {} };
    this.#sweeps = new Loop(rt, { everyMs: SWEEP_MS, round, maxPauseMs: SWEEP_MS, ...quietly });
  }

  async open(): Promise<void> {
    // Dials, and so installs and examines.
    const facts = await this.#readFacts();
    const { isEmbedded } = this.#dialer;
    const around = { isEmbedded, offset: null, hints: null, health: null };
    for (const { level, fact, advice = '' } of judge(facts, around))
      if (level === 'warn')
        this.#rt.events.emit('store.warned', { store: this.name, finding: fact, advice });
    if (this.#options.maxTtls !== null) void this.#sweeps.start();
  }

  async examine(): Promise<Examination> {
    const { clock } = this.#rt;
    const beganMs = clock.monotonicMs();
    const facts = await this.#readFacts();
    const uncertaintyMs = (clock.monotonicMs() - beganMs) / 2;
    const offset = { offsetMs: facts.clockMs - (clock.wallMs() - uncertaintyMs), uncertaintyMs };
    const { isEmbedded } = this.#dialer;
    const query = (text: string) => this.#leaseConnection.run('examine', text, OPEN_MS);
    const health = isEmbedded ? null : await readHealth({ query }, this.#address.schema);
    // A hint that is lost makes a waiter slow, and is nothing else: the rest is worth knowing.
    const hints = await this.signals.findMode().catch(() => null);
    const findings = judge(facts, { isEmbedded, offset, hints, health });
    return { store: this.name, findings };
  }

  async close(): Promise<void> {
    void this.#sweeps.stop();
    await this.signals.close();
    const all = [this.#leaseConnection, ...this.#workConnections, this.#hintConnection];
    await Promise.all(all.map((connection) => connection.close()));
  }

  #readFacts(): Promise<ServerFacts> {
    const query = (text: string) => this.#leaseConnection.run('examine', text, OPEN_MS);
    return readFacts({ query });
  }

  /** Connects, refuses a server that cannot keep leases, and examines its era. */
  #makeLink(timeoutMs: number): Promise<PostgresLink> {
    const { schema } = this.#address;
    return this.#prepared(timeoutMs, false, async (link) => {
      const problems = problemsOf(await readFacts(link), this.#dialer.isEmbedded);
      if (problems.length > 0) throw new StoreUnsuitableError({ store: this.name, problems });
      const { create = this.#options.maxTtls !== null, unfinished } = this.#options;
      await ensureInstalled(link, { store: this.name, schema, create, unfinished });
      const request = this.#quarantine.examination;
      const sql = statement('server_examine', request, { schema, timeoutMs });
      this.#quarantine.examined((await link.query(sql)) ?? '');
    });
  }

  #makeHintLink(timeoutMs: number): Promise<PostgresLink> {
    return this.#prepared(timeoutMs, true, (link) => this.signals.prepare(link));
  }

  async #prepared(
    timeoutMs: number,
    isListening: boolean,
    prepare: (link: PostgresLink) => Promise<void>,
  ): Promise<PostgresLink> {
    const link = await this.#dialer.dial(timeoutMs, isListening);
    // A server or network that goes silent now would leave the connection dialing permanently.
    const timer = this.#rt.clock.after(timeoutMs, () => link.destroy());
    try {
      await prepare(link);
      return link;
    } catch (error) {
      link.destroy();
      throw error;
    } finally {
      timer.cancel();
    }
  }

  /** Removes expired rows, a chunk at a time. */
  async #sweep(): Promise<number | undefined> {
    const options = { schema: this.#address.schema, timeoutMs: SWEEP_TIMEOUT_MS };
    const sql = statement('server_sweep', this.#sweptTo, options);
    this.#sweptTo = (await this.#workConnection.run('sweep', sql, SWEEP_TIMEOUT_MS)) ?? '';
    if (this.#sweptTo !== '') return 0;
    const removals = statement('record_sweep', '', options);
    await this.#workConnection.run('sweep', removals, SWEEP_TIMEOUT_MS);
    return undefined;
  }
}
