import { type Clock, systemClock } from '../../base/clock.ts';
import { ConfigError, StoreUnsuitableError } from '../../base/errors.ts';
import { Emitter } from '../../base/events.ts';
import { type Random, systemRandom } from '../../base/random.ts';
import type { Examination, Finding, Store } from '../store.ts';
import { type Client, Connection } from './connection.ts';
import { judge, readInfo } from './examination.ts';
import { Keys } from './keys.ts';
import { RedisLeases } from './leases.ts';
import { Quarantine, type RunScript } from './quarantine.ts';
import { RedisRecords } from './records.ts';
import { isErrorReply } from './replies.ts';
import { RedisSignals } from './signals.ts';

export interface RedisStoreOptions {
  /** Put before every key; default none. Two Holdfasts see each other's leases if they have the same one. */
  prefix?: string;
  /** `off` only where a second owner for one TTL after a restart does no harm: development, tests. */
  quarantine?: 'on' | 'off';
  clock?: Clock;
  random?: Random;
  events?: Emitter;
}

/** Redis 6.2 or later, or Valkey, from a URL. Connects and examines the server before it resolves. */
export async function openRedisStore(url: string, options: RedisStoreOptions = {}): Promise<Store> {
  const store = new RedisStore(url, options);
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class RedisStore implements Store {
  readonly name: string;
  readonly leases: RedisLeases;
  readonly records: RedisRecords;
  readonly signals: RedisSignals;
  readonly #connection: Connection;
  readonly #quarantine: Quarantine;
  readonly #events: Emitter;
  readonly #clock: Clock;
  readonly #mode: 'on' | 'off';
  #findings: readonly Finding[] = [];
  readonly #warned = new Set<string>();

  constructor(url: string, options: RedisStoreOptions) {
    const {
      clock = systemClock,
      random = systemRandom,
      events = new Emitter(),
      prefix = '',
      quarantine = 'on',
    } = options;
    if (quarantine !== 'on' && quarantine !== 'off') {
      throw new ConfigError({
        field: 'quarantine',
        value: quarantine,
        rule: "it is 'on' or 'off'",
      });
    }
    const keys = new Keys(prefix);
    this.name = withoutSecrets(url);
    this.#events = events;
    this.#clock = clock;
    this.#mode = quarantine;
    this.#quarantine = new Quarantine({
      mode: quarantine,
      store: this.name,
      marker: keys.marker,
      clock,
      random,
      events,
    });
    this.#connection = new Connection({
      url,
      name: this.name,
      clock,
      random,
      prepare: (client) => this.#prepare(client),
      onConnected: () => events.emit('store.connected', { store: this.name }),
      onDisconnected: (why) => events.emit('store.disconnected', { store: this.name, why }),
    });
    const connection = this.#connection;
    this.leases = new RedisLeases({
      name: this.name,
      keys,
      connection,
      quarantine: this.#quarantine,
      clock,
    });
    this.records = new RedisRecords({ keys, connection });
    this.signals = new RedisSignals({
      keys,
      publisher: connection,
      url,
      name: this.name,
      clock,
      random,
    });
  }

  async open(): Promise<void> {
    await this.#connection.open();
  }

  async examine(): Promise<Examination> {
    await this.#connection.use('examine', EXAMINE_TIMEOUT_MS, (client) => this.#look(client));
    return { store: this.name, findings: this.#findings };
  }

  async close(): Promise<void> {
    await Promise.all([this.signals.close(), this.#connection.close()]);
  }

  async #prepare(client: Client): Promise<void> {
    const server = await this.#look(client);
    const problems = this.#findings.filter((finding) => finding.level === 'refuse');
    if (problems.length > 0) {
      throw new StoreUnsuitableError({
        store: this.name,
        problems: problems.map(({ fact, advice }) => `${fact} ${advice}`),
      });
    }
    for (const { level, fact, advice = '' } of this.#findings) {
      if (level !== 'warn' || this.#warned.has(fact)) continue;
      this.#warned.add(fact);
      this.#events.emit('store.warned', { store: this.name, finding: fact, advice });
      // A warning that nobody listens for still has to reach somebody, unless this is declared to be a playground.
      if (this.#mode === 'on' && !this.#events.hasListener('store.warned'))
        process.emitWarning(`${this.name}: ${fact} ${advice}`, 'HoldfastWarning');
    }
    const run: RunScript = (script, keys, args) =>
      client.sendCommand(['EVAL', script.source, String(keys.length), ...keys, ...args]);
    await this.#quarantine.examine(run, server);
  }

  async #look(client: Client) {
    const [info, clockOffsetMs] = await Promise.all([
      this.#info(client),
      this.#clockOffset(client),
    ]);
    const facts = readInfo(info, clockOffsetMs);
    this.#findings = judge(facts);
    return facts;
  }

  async #info(client: Client): Promise<string> {
    try {
      return (await client.sendCommand(['INFO'])) as string;
    } catch (error) {
      if (!isErrorReply(error) || !error.message.startsWith('NOPERM')) throw error;
      const problem =
        'This user may not run INFO, so nobody can tell whether the server has forgotten leases. Grant +info.';
      throw new StoreUnsuitableError({ store: this.name, problems: [problem] });
    }
  }

  async #clockOffset(client: Client): Promise<number> {
    const beforeMs = this.#clock.wallMs();
    const [seconds, micros] = (await client.sendCommand(['TIME'])) as [string, string];
    const middleMs = (beforeMs + this.#clock.wallMs()) / 2;
    return Number(seconds) * 1_000 + Number(micros) / 1_000 - middleMs;
  }
}

const EXAMINE_TIMEOUT_MS = 5_000;

/** The address as messages may show it: without user, password and query. */
function withoutSecrets(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
  } catch {
    throw new ConfigError({
      field: 'url',
      value: '(not shown: it may hold a password)',
      rule: 'it is not a URL',
    });
  }
}
