/** Two PostgreSQL servers that Patroni keeps, one of them as the primary, with etcd: private folders, private ports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { type Home, LOOPBACK } from './home.ts';
import { lastingPort } from './lasting-port.ts';
import {
  familyOf,
  freezeAll,
  inMemory,
  rowsOf,
  thawAll,
  unprivileged,
  untilGone,
} from './postgres-server.ts';
import { atExit, isGone, killAtExit } from './process.ts';
import { until } from './until.ts';

/** After the loss of a primary, a standby is promoted within this and a second. */
const LEADER_TTL_S = 8;
/** A standby that Patroni could not repair by then is made again, as an operator would. */
const REBUILD_AFTER_MS = 30_000;
/** Patroni may also fail to start the standby that it has just made. */
const MAX_REBUILDS = 3;
const HEALTHY_DEADLINE_MS = 90_000;
const REST_DEADLINE_MS = 1_000;

export interface PatroniOptions {
  /** PostgreSQL's programs. */
  readonly programs: string;
  /** The standby is synchronous, and no other is ever promoted. */
  readonly isSynchronous: boolean;
  /** Further settings of PostgreSQL. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Picks a home for each server, and for etcd. This host by default. */
  readonly pickHome?: () => Promise<Home>;
}

export interface PatroniCluster extends AsyncDisposable {
  readonly nodes: readonly PatroniNode[];
  /** Of the servers, and of etcd. */
  readonly homes: readonly Home[];
  /** The one that Patroni says is the primary. Waits for one. */
  leader(): Promise<PatroniNode>;
  /** Waits until another one is the primary, and has been for a moment. */
  untilFailedOver(from: PatroniNode): Promise<void>;
  /** Waits until there are one primary, and one standby that has caught up. */
  untilHealthy(): Promise<void>;
}

/** One server with the Patroni that keeps it. */
export class PatroniNode {
  readonly name: string;
  readonly port: number;
  readonly url: string;
  readonly home: Home;
  readonly #dir: string;
  readonly #restPort: number;
  /** What others reach of it, and its way to etcd; none where it has a network of its own. */
  readonly #links: readonly FaultProxy[];
  #patroni: ChildProcess | null = null;

  constructor(dir: string, name: string, { home, ...ports }: Place, links: readonly FaultProxy[]) {
    this.name = name;
    this.home = home;
    this.port = ports.server;
    this.url = `postgres://postgres@${home.address}:${ports.server}/postgres`;
    this.#dir = dir;
    this.#restPort = ports.rest;
    this.#links = links;
  }

  /** Runs statements over a connection of its own, and returns the rows of the last one. */
  sql<Row extends object = Record<string, unknown>>(text: string): Promise<Row[]> {
    return rowsOf<Row>(this.url, text);
  }

  start(): void {
    const command = ['patroni', join(this.#dir, `${this.name}.yml`)];
    this.#patroni = spawnQuietly(this.#dir, command, this.home);
  }

  /** SIGKILL to Patroni, the server, and whatever else works on its folder. */
  async kill(): Promise<void> {
    for (let family = this.#family(); family.length > 0; family = this.#family()) {
      for (const pid of family) killIfThere(pid);
      await untilGone(family);
    }
    // While nobody has reaped the killed server, its successor would take this for a running one's.
    for (const end of ['', '.lock'])
      rmSync(join(this.#dir, `.s.PGSQL.${this.port}${end}`), { force: true });
  }

  /** Makes it again from the primary. */
  async rebuild(): Promise<void> {
    await this.kill();
    rmSync(join(this.#dir, this.name), { recursive: true, force: true });
    this.start();
  }

  /** SIGSTOP to Patroni and to all processes of the server. */
  async freeze(): Promise<void> {
    await freezeAll(this.#family());
  }

  /** SIGSTOP to Patroni alone: its server answers on, also when another one is promoted. */
  async freezePatroni(): Promise<void> {
    await freezeAll(familyOf(this.#patroni?.pid ?? 0));
  }

  /** SIGCONT to all. */
  async thaw(): Promise<void> {
    await thawAll(this.#family());
  }

  /** Cuts it off from etcd and from the other server, and not from its clients. */
  async isolate(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.halfOpen()));
  }

  async rejoin(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.pass()));
    for (const link of this.#links) link.reset();
  }

  /** What Patroni says over HTTP; null where it does not answer. */
  async ask(path: string): Promise<{ readonly status: number; readonly body: unknown } | null> {
    try {
      const url = `http://${this.home.address}:${this.#restPort}/${path}`;
      const response = await fetch(url, { signal: AbortSignal.timeout(REST_DEADLINE_MS) });
      return { status: response.status, body: await response.json() };
    } catch {
      return null;
    }
  }

  /** Patroni first. The server, which it starts as a process of its own, names the folder, too. */
  #family(): number[] {
    const folder = join(this.#dir, this.name);
    const found = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && isAbout(pid, folder));
    return found.flatMap((pid) => familyOf(Number(pid))).filter((pid) => !isGone(pid));
  }
}

function isAbout(pid: string, folder: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder);
  } catch {
    return false;
  }
}

interface Place {
  readonly home: Home;
  readonly server: number;
  readonly rest: number;
}

export async function startPatroni(options: PatroniOptions): Promise<PatroniCluster> {
  const dir = mkdtempSync(join(inMemory(), 'holdfast-ha-'));
  chmodSync(dir, 0o777);
  const etcdPort = await lastingPort([1]);
  const etcdHome = (await options.pickHome?.()) ?? LOOPBACK;
  const etcdAt = { host: etcdHome.address, port: etcdPort };
  const nodes = await Promise.all(
    ['n1', 'n2'].map((name) => configuredNode(dir, name, etcdAt, options)),
  );
  const etcd = startEtcd(dir, etcdPort, etcdHome);
  const end = async () => {
    await Promise.all(nodes.map(({ node }) => node.kill()));
    const gone = once(etcd, 'exit');
    etcd.kill('SIGKILL');
    await gone;
  };
  const forget = atExit(() => rmSync(dir, { recursive: true, force: true }));
  // The servers are no children of this process.
  const forgetNodes = atExit(() => {
    for (const { node } of nodes) void node.kill();
  });
  const cluster = clusterOf(
    nodes.map(({ node }) => node),
    etcdHome,
    options,
    async () => {
      await end();
      await Promise.all(nodes.flatMap(({ links }) => links.map((link) => link.close())));
      rmSync(dir, { recursive: true, force: true });
      forget();
      forgetNodes();
    },
  );
  for (const { node } of nodes) node.start();
  await cluster.untilHealthy();
  return cluster;
}

function clusterOf(
  nodes: readonly PatroniNode[],
  etcdHome: Home,
  { isSynchronous }: PatroniOptions,
  stop: () => Promise<void>,
): PatroniCluster {
  const how = { deadlineMs: HEALTHY_DEADLINE_MS, every: 100 };
  const findLeader = async () => {
    for (const node of nodes) if ((await node.ask('primary'))?.status === 200) return node;
    return null;
  };
  const isHealthy = async () => {
    const leader = await findLeader();
    const standby = nodes.find((node) => node !== leader);
    if (leader === null || standby === undefined) return false;
    if ((await standby.ask(isSynchronous ? 'sync' : 'replica'))?.status !== 200) return false;
    const [row] = await leader.sql<{ is_streaming: boolean }>(`
      SELECT bool_or(state = 'streaming' AND sync_state = '${isSynchronous ? 'sync' : 'async'}')
      AS is_streaming FROM pg_stat_replication WHERE application_name = '${standby.name}'`);
    return row?.is_streaming === true;
  };
  return {
    nodes,
    homes: [...nodes.map(({ home }) => home), etcdHome],
    leader: () => until(findLeader, { ...how, what: 'a primary' }),
    async untilFailedOver(from) {
      const others = nodes.filter((node) => node !== from);
      const isOver = async () => {
        const replies = await Promise.all(others.map((node) => node.ask('primary')));
        return replies.some((reply) => reply?.status === 200);
      };
      await until(isOver, { ...how, what: 'a failover' });
    },
    async untilHealthy() {
      const patience = { ...how, deadlineMs: REBUILD_AFTER_MS, what: 'a whole cluster' };
      for (let rebuilt = 0; rebuilt < MAX_REBUILDS; rebuilt++) {
        const isWhole = await until(isHealthy, patience).catch(() => false);
        if (isWhole) return;
        const leader = await findLeader();
        const standby = nodes.find((node) => node !== leader);
        if (leader !== null) await standby?.rebuild();
      }
      await until(isHealthy, patience);
    },
    [Symbol.asyncDispose]: stop,
  };
}

interface Address {
  readonly host: string;
  readonly port: number;
}

async function configuredNode(dir: string, name: string, etcdAt: Address, options: PatroniOptions) {
  const home = (await options.pickHome?.()) ?? LOOPBACK;
  const { address } = home;
  const ports = { server: await lastingPort(), rest: await lastingPort() };
  const own = [ports.server, ports.rest].map((port): Address => ({ host: address, port }));
  const proxied = (target: Address) => FaultProxy.start({ target });
  const reached = [...own, etcdAt];
  const links = home === LOOPBACK ? await Promise.all(reached.map(proxied)) : [];
  const [server, rest, etcd] = reached.map(
    ({ host, port }, i) => `${host}:${links[i]?.port ?? port}`,
  );
  const { programs, isSynchronous, settings = {} } = options;
  const trust = { username: 'postgres' };
  // JSON is YAML, too.
  const config = {
    scope: 'holdfast',
    name,
    restapi: { listen: `${address}:${ports.rest}`, connect_address: rest },
    // Not the address that etcd has for itself, which leads past the proxy.
    etcd3: { hosts: etcd, use_proxies: true },
    bootstrap: {
      dcs: {
        ...{ ttl: LEADER_TTL_S, loop_wait: 1, retry_timeout: 3, primary_start_timeout: 0 },
        ...{ maximum_lag_on_failover: 1_048_576, synchronous_mode: isSynchronous },
        postgresql: {
          use_pg_rewind: true,
          remove_data_directory_on_rewind_failure: true,
          parameters: { wal_level: 'replica', wal_log_hints: 'on', ...settings },
        },
      },
      initdb: [{ encoding: 'UTF8' }, 'no-locale', 'no-sync', { auth: 'trust' }],
      pg_hba: ['host all all samenet trust', 'host replication all samenet trust'],
    },
    postgresql: {
      listen: `${address}:${ports.server}`,
      connect_address: server,
      data_dir: join(dir, name),
      bin_dir: programs,
      pgpass: join(dir, `${name}.pgpass`),
      authentication: { superuser: trust, replication: trust, rewind: trust },
      parameters: { unix_socket_directories: dir, dynamic_shared_memory_type: 'mmap' },
      basebackup: ['no-sync', { checkpoint: 'fast' }],
    },
  };
  writeFileSync(join(dir, `${name}.yml`), JSON.stringify(config));
  return { node: new PatroniNode(dir, name, { home, ...ports }, links), links };
}

function startEtcd(dir: string, port: number, home: Home): ChildProcess {
  const [client, peer] = [port, port + 1].map((one) => `http://${home.address}:${one}`);
  const flags = {
    'data-dir': join(dir, 'etcd'),
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `default=${peer}`,
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  return spawnQuietly(dir, ['etcd', '--unsafe-no-fsync', ...args], home);
}

function spawnQuietly(dir: string, command: readonly string[], { enter }: Home): ChildProcess {
  const [file = '', ...args] = [...enter, ...unprivileged(command)];
  const env = { ...process.env, HOME: dir, LC_ALL: 'C.UTF-8' };
  const log = openSync(join(dir, `${basename(command.at(-1) ?? '')}.log`), 'a');
  const child = spawn(file, args, { stdio: ['ignore', log, log], cwd: dir, env });
  killAtExit(child);
  return child;
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
