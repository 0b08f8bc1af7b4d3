import type { Home } from './home.ts';
import { userInfo } from './redis-config.ts';
import { type RedisServer, startAllRedis, startRedis, stopAllRedis } from './redis-server.ts';
import type { Credentials, Reply } from './resp.ts';
import { until } from './until.ts';

const SENTINELS = 3;
const QUORUM = 2;
/** What the sentinels call the primary and its replicas. */
const NAME = 'mymaster';
const DOWN_AFTER_MS = 1_000;
/** A failover that got stuck is given up after this, and tried again after twice this. */
const FAILOVER_TIMEOUT_MS = 2_000;
const READY_DEADLINE_MS = 15_000;
const FAILOVER_DEADLINE_MS = 30_000;

// As shipped, a sentinel asks for INFO every ten seconds, says hello every two, and does nothing for
// thirty after it stood still itself. SENTINEL DEBUG, from Redis 7.0, makes them as quick as a test.
//
// A server that says it is a primary, and should not be, is told to follow after four times the hello's
// period. The sentinel that promotes a replica sees its success after a second at most, and only then
// tells the others: had these waited for less, they would take the promotion back.
const QUICK_PERIODS_MS = {
  'INFO-PERIOD': 250,
  'PING-PERIOD': 200,
  'ASK-PERIOD': 200,
  'PUBLISH-PERIOD': 600,
  'TILT-PERIOD': 1_000,
};
/** Until they have found each other there is no failover, and hellos may come as quickly as they like. */
const DISCOVERY_PERIODS_MS = { ...QUICK_PERIODS_MS, 'PUBLISH-PERIOD': 100 };

export interface SentinelsOptions {
  /** How many replicas the primary has. One by default. */
  replicas?: number;
  /** More options for the primary and the replicas, such as `['--min-replicas-to-write', '1']`. */
  args?: readonly string[];
  /** What the primary and the replicas ask for. */
  credentials?: Credentials;
  /** What the sentinels ask for. */
  sentinelCredentials?: Credentials;
  /** Picks the ports of the primary and the replicas. By default the kernel does. */
  pickPort?: () => Promise<number>;
  /** Picks a home for each server and each sentinel. This host by default. */
  pickHome?: () => Promise<Home>;
  /** How long a server is silent before a sentinel takes it for down. */
  downAfterMs?: number;
  /** Leaves the sentinels' periods as in production: old primaries then take writes for 10 s and longer. */
  asShipped?: boolean;
}

/** Starts a primary, its replicas and three sentinels that know them and each other. Use `await using`. */
export async function startSentinels(options: SentinelsOptions = {}): Promise<RedisSentinels> {
  const servers = await startServers(options);
  const sentinels: RedisServer[] = [];
  try {
    sentinels.push(...(await startWatching(servers, options)));
    const watched = new RedisSentinels(servers, sentinels, options);
    await watched.setPeriods(DISCOVERY_PERIODS_MS);
    await watched.untilHealthy();
    await watched.setPeriods();
    return watched;
  } catch (error) {
    await stopAllRedis([...sentinels, ...servers]);
    throw error;
  }
}

async function startServers(options: SentinelsOptions): Promise<RedisServer[]> {
  const { replicas = 1, args = [], credentials, pickPort, pickHome } = options;
  const shared = {
    ...{ args, keepsConfig: true },
    ...(credentials ? { credentials } : {}),
    ...(pickPort ? { pickPort } : {}),
    ...(pickHome ? { pickHome } : {}),
  };
  const primary = await startRedis(shared);
  try {
    const following = Array.from({ length: replicas }, () => ({ ...shared, replicaOf: primary }));
    return [primary, ...(await startAllRedis(following))];
  } catch (error) {
    await primary.stop();
    throw error;
  }
}

function startWatching(
  [primary]: readonly RedisServer[],
  options: SentinelsOptions,
): Promise<RedisServer[]> {
  const { credentials, sentinelCredentials, downAfterMs = DOWN_AFTER_MS, pickHome } = options;
  const sentinel: Line[] = [
    line('monitor', NAME, String(primary?.home.address), String(primary?.port), String(QUORUM)),
    line('down-after-milliseconds', NAME, String(downAfterMs)),
    line('failover-timeout', NAME, String(FAILOVER_TIMEOUT_MS)),
    ...login(['auth-user', NAME], ['auth-pass', NAME], credentials),
    ...login(['sentinel-user'], ['sentinel-pass'], sentinelCredentials),
  ];
  const shared = {
    sentinel,
    ...(pickHome ? { pickHome } : {}),
    ...(sentinelCredentials ? { credentials: sentinelCredentials } : {}),
  };
  return startAllRedis(Array.from({ length: SENTINELS }, () => shared));
}

type Line = readonly [string, ...string[]];

function line(...words: string[]): Line {
  return ['sentinel', ...words];
}

function login(user: string[], pass: string[], credentials: Credentials | undefined): Line[] {
  if (credentials === undefined) return [];
  const { username, password } = credentials;
  const named = username === undefined ? [] : [line(...user, username)];
  return [...named, line(...pass, password)];
}

export class RedisSentinels {
  /** The first primary and its replicas, in this order whatever they are now. */
  readonly servers: readonly RedisServer[];
  /** Each may be frozen, killed and restarted as any other server. */
  readonly sentinels: readonly RedisServer[];
  readonly #options: SentinelsOptions;

  constructor(
    servers: readonly RedisServer[],
    sentinels: readonly RedisServer[],
    options: SentinelsOptions,
  ) {
    this.servers = servers;
    this.sentinels = sentinels;
    this.#options = options;
  }

  /** With the servers' credentials in front if there are any; those of the sentinels have no place in it. */
  url(name = NAME): string {
    const hosts = this.sentinels.map(({ home, port }) => `${home.address}:${port}`);
    return `redis+sentinel://${userInfo(this.#options.credentials)}${hosts.join(',')}/${name}`;
  }

  /** The one that all sentinels which are awake name. */
  primary(): Promise<RedisServer> {
    return until(() => this.#agreed(), { what: 'the sentinels to name the same primary' });
  }

  /** All servers but the primary, dead or alive. */
  async replicas(): Promise<RedisServer[]> {
    const primary = await this.primary();
    return this.servers.filter((server) => server !== primary);
  }

  /** Until every sentinel that is awake sees all servers and all other sentinels, and all of them well. */
  async untilHealthy(): Promise<void> {
    const areHealthy = async () => {
      const views = await Promise.all(this.#awake().map((sentinel) => this.#seesAll(sentinel)));
      return views.length > 0 && views.every(Boolean);
    };
    await until(areHealthy, {
      what: 'the sentinels to see everybody well',
      deadlineMs: READY_DEADLINE_MS,
    });
  }

  /** Makes the sentinels quick, unless told to leave them as shipped. A restarted one has to be told again. */
  async setPeriods(periodsMs: Readonly<Record<string, number>> = QUICK_PERIODS_MS): Promise<void> {
    if (this.#options.asShipped) return;
    const command = ['SENTINEL', 'DEBUG', ...Object.entries(periodsMs).flat()];
    // Before Redis 7.0 there is no such command: everything takes longer, and works.
    await Promise.allSettled(this.#awake().map((sentinel) => sentinel.cli(...command)));
  }

  /** Moves the primary to a replica by hand, with the old one alive. Returns the new one. */
  async failover(): Promise<RedisServer> {
    const old = await this.primary();
    const command = ['SENTINEL', 'FAILOVER', NAME];
    // A sentinel refuses while it is busy with another failover, or has not seen a replica well yet.
    await until(async () => (await this.#awake()[0]?.cli(...command)) === 'OK', {
      what: 'a sentinel to begin a failover',
      deadlineMs: FAILOVER_DEADLINE_MS,
    });
    return this.untilFailedOver(old);
  }

  /**
   * Until all sentinels that are awake name another primary, it is one, and every other server that is
   * awake follows it: then it takes writes, if enough replicas are left for its `min-replicas-to-write`.
   */
  untilFailedOver(old: RedisServer): Promise<RedisServer> {
    const successor = async () => {
      const primary = await this.#agreed();
      if (primary === undefined || primary === old) return undefined;
      const others = this.servers.filter((server) => server.isAwake && server !== primary);
      const facts = await Promise.all([
        ...[primary, ...others].map((server) => isInPlace(server, primary)),
        // One that has not noticed would take the next failover back, for it still wants to make the
        // promoted one a replica.
        ...this.#awake().map((sentinel) => seesFollowing(sentinel, others)),
      ]);
      return facts.every(Boolean) ? primary : undefined;
    };
    return until(successor, {
      what: `a failover from port ${old.port}`,
      deadlineMs: FAILOVER_DEADLINE_MS,
    });
  }

  async stop(): Promise<void> {
    await stopAllRedis([...this.sentinels, ...this.servers]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #awake(): RedisServer[] {
    return this.sentinels.filter((sentinel) => sentinel.isAwake);
  }

  async #agreed(): Promise<RedisServer | undefined> {
    const command = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME];
    const named = await Promise.all(this.#awake().map((sentinel) => sentinel.cli(...command)));
    const ports = new Set(named.map((address) => String(strings(address)[1])));
    if (ports.size !== 1) return undefined;
    return this.servers.find((server) => ports.has(String(server.port)));
  }

  async #seesAll(sentinel: RedisServer): Promise<boolean> {
    const [master, replicas, others] = await Promise.all([
      sentinel.cli('SENTINEL', 'MASTER', NAME),
      sentinel.cli('SENTINEL', 'REPLICAS', NAME),
      sentinel.cli('SENTINEL', 'SENTINELS', NAME),
    ]);
    const following = rows(replicas);
    const colleagues = rows(others);
    return (
      fields(master).flags === 'master' &&
      following.length === this.servers.length - 1 &&
      following.every((row) => row.flags === 'slave' && row['master-link-status'] === 'ok') &&
      colleagues.length === this.sentinels.length - 1 &&
      colleagues.every((row) => row.flags === 'sentinel')
    );
  }
}

async function isInPlace(server: RedisServer, primary: RedisServer): Promise<boolean> {
  const { role, master_port, master_link_status } = await server.info('replication');
  if (server === primary) return role === 'master';
  return master_port === String(primary.port) && master_link_status === 'up';
}

async function seesFollowing(sentinel: RedisServer, servers: readonly RedisServer[]) {
  const seen = rows(await sentinel.cli('SENTINEL', 'REPLICAS', NAME));
  return servers.every(({ port }) => {
    const row = seen.find((replica) => replica.port === String(port));
    return row?.['role-reported'] === 'slave' && row['master-link-status'] === 'ok';
  });
}

function strings(reply: Reply): string[] {
  if (!Array.isArray(reply)) throw new Error(`not a list: ${String(reply)}`);
  return reply.map(String);
}

function rows(reply: Reply): Record<string, string>[] {
  if (!Array.isArray(reply)) throw new Error(`not a list: ${String(reply)}`);
  return reply.map(fields);
}

/** Sentinels answer with names and values in turn. */
function fields(reply: Reply): Record<string, string> {
  const words = strings(reply);
  const pairs = words.flatMap((name, index) =>
    index % 2 === 0 ? [[name, words[index + 1] ?? ''] as const] : [],
  );
  return Object.fromEntries(pairs);
}
