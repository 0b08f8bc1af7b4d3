import type { Duration } from './core/duration.ts';
import type { HttpPollOptions } from './fleet/poll/http/http-options.ts';
import type { Poll } from './fleet/poll/poll-scheduler.ts';
import type { RunnerOptions } from './fleet/runner.ts';
import type { TargetIds } from './fleet/targets/target-record.ts';
import type { IntentOptions } from './intents/intents.ts';
import type { KindDeclarations, KindOptions } from './intents/kind.ts';
import type { RetentionOptions } from './retention.ts';
import type { MaxTtlOption } from './store/port/keyspaces.ts';
import type { RedisLinkOptions } from './store/redis/client/link-options.ts';
import type { WorkerOptions } from './worker/worker-options.ts';

/** The roles of an instance: serve the API, poll targets, run sessions. */
export const ROLES = ['api', 'poller', 'worker'] as const;
export type Role = (typeof ROLES)[number];

/**
 * The address of the API, its clients and its limits. The server checks them; see
 * `docs/reference/configuration.md`.
 */
export interface ApiConfig {
  /** Default 127.0.0.1. Without tokens it must be an address that only this host can reach. */
  host?: string;
  /** Default 4747, or a free port if that is taken. */
  port?: number;
  /**
   * How many processes share the port. Default 1. More need the role `api` alone, and a configured
   * token. Limits count in each process.
   */
  processes?: number;
  /**
   * The tokens of clients, in addition to those of the environment, which is the better place for
   * them. Without any token, one is made and shown once.
   */
  tokens?: readonly {
    readonly id: string;
    readonly token: string | readonly [current: string, previous: string];
    readonly scope: 'v3:read' | 'v3:write' | 'v3:admin';
    readonly tenant?: string;
    readonly expiresAt?: string;
  }[];
  /** The networks that clients may be in, and trusted proxies. */
  lan?: {
    /** `10.0.0.0/8`, `fd00::/8`, or single addresses. */
    readonly allow: readonly string[];
    /** Proxies whose `X-Forwarded-For` is trusted. Default: none. */
    readonly trustedProxies?: readonly string[];
  };
  /** The host names of the API, besides `localhost` and addresses. Default: any. */
  hosts?: readonly string[];
  /** Limits of requests. A request above a limit gets `429` or `503` with `Retry-After`. */
  limits?: {
    /** Requests at once. Default 1,000. */
    readonly inFlight?: number;
    /** Requests of each token. Default: no limit. */
    readonly rate?: {
      readonly requestsPerSecond: number;
      /** Requests at once after a pause. Default: those of one second, at least 1. */
      readonly burst?: number;
    };
  };
  /** Limits of clients that watch events. */
  events?: {
    /** Clients at once. Default 5,000. */
    readonly clients?: number;
    /** Clients at once with one token. Default 100. */
    readonly clientsPerToken?: number;
    /** Unread bytes in the queue of a slow client. Default 1 MiB. */
    readonly queuedBytes?: number;
  };
  /** `open`: `/metrics` needs no token. Default `token`. */
  metrics?: 'open' | 'token';
  /** How long a body may take to arrive. Default 10 s. */
  bodyTimeout?: Duration;
  /** How long the answer to a request may take. Default 15 s. */
  handlerTimeout?: Duration;
  /** How long the headers of a request may take to arrive. Default 10 s. */
  headersTimeout?: Duration;
  /** How long a whole request may take to arrive. Default 30 s. */
  requestTimeout?: Duration;
  /** How long a connection may be silent during an answer. Default 60 s. */
  idleTimeout?: Duration;
  /** Connections at once. Default 10,000. Further connections are refused. */
  maxConnections?: number;
}

/**
 * The options in `holdfast.config.mjs`. `config-schema.ts` checks them. Flags and environment
 * variables win over them.
 */
export interface HoldfastConfig {
  /** The address of the store. Put one with a password into the environment (`HOLDFAST_STORE`). */
  store?: string | undefined;
  /** A text before every key in the store. */
  prefix?: string | undefined;
  /**
   * `off`, for development only: the store grants leases at once after it lost data. Default `on`.
   */
  quarantine?: 'on' | 'off' | undefined;
  /**
   * The longest TTL of leases: one for all, or one for each of `lease`, `poll` and `workflow`.
   * Default 30 s, and 5 min for workflows. The same for every process of the store.
   */
  maxTtl?: MaxTtlOption | undefined;
  /**
   * SQLite only: durable data is on the disk within a second (`everysec`, the default), or before
   * the call returns (`always`).
   */
  sync?: 'everysec' | 'always' | undefined;
  /** For addresses of Redis: passwords that rotate, and servers behind NAT. */
  redis?: RedisLinkOptions | undefined;
  /** `uuid`: the id of a target must be a UUID. Default `any`: every safe id. */
  sessionIds?: TargetIds | undefined;

  /**
   * For `holdfast intents`, and for `holdfast up` with the role `api`. Secrets belong in the
   * environment.
   */
  intents?: Pick<IntentOptions, 'apiLeases'> | undefined;

  // The rest is for `holdfast up`.

  /** The roles of the instance. Default: all. */
  roles?: readonly Role[] | undefined;
  /** For the role `api`. */
  api?: ApiConfig | undefined;
  /**
   * How long old data is kept: `{ sessions: '24h', deadLetters: '7d', history: '24h' }`. The same
   * for all instances: the shortest time wins.
   */
  retention?: RetentionOptions | undefined;

  /** The kinds of sessions that intents start, by name, beside `live` and `vod`. */
  kinds?: KindDeclarations | undefined;
  /**
   * Pools of scarce things that declared kinds need a slot of, by name. The same for all workers.
   */
  pools?: NonNullable<WorkerOptions['pools']> | undefined;
  /**
   * Pools of `live` and `vod`, by name. Each session needs a slot of one pool. Default `{ tuners: 4
   * }`. The same for all workers.
   */
  resources?: NonNullable<WorkerOptions['resources']> | undefined;
  /**
   * What runs for `live` and `vod`: a function or a command. Default: a small built-in pipeline.
   */
  pipelines?: NonNullable<WorkerOptions['pipelines']> | undefined;
  /** For the role `worker`. */
  worker?: Pick<WorkerOptions, 'name' | 'kinds' | 'starts' | 'ttl' | 'grace'> | undefined;

  /** The readable part of the instance's id. Default: the host's name. */
  name?: string | undefined;
  /**
   * The instance's share of the targets, relative to other instances: a whole number, default 1.
   */
  weight?: number | undefined;
  /** The poll interval of targets without one. Default 10 s. */
  every?: Duration | undefined;
  /**
   * The TTL of the leases of targets: after a crash, another instance takes over within it. Default
   * 30 s.
   */
  ttl?: Duration | undefined;
  /** How long one poll may take before it is asked to stop. Default 30 s. */
  timeout?: Duration | undefined;
  /** Polls at once. Default 64. */
  concurrency?: number | undefined;
  /**
   * A target whose polls fail is polled less often: its interval doubles, up to this. Default 1
   * min.
   */
  maxBackoff?: Duration | 'off' | undefined;
  /** Whether the store keeps the last result of each target. Default `on`. */
  results?: 'on' | 'off' | undefined;
  /** How often to look for targets and instances of other programs in the store. Default 30 s. */
  discovery?: Duration | 'off' | undefined;
  /**
   * For the built-in poll. On the embedded store it may poll this host (`loopback`), else public
   * addresses only.
   */
  http?: HttpPollOptions | undefined;
  /** Polls one target. Default: an HTTP request to its `url`. */
  poll?: Poll | undefined;
  /**
   * For the role `poller`, in place of polling: runs a long-lived task for each target, a function
   * (`run`) or a command.
   */
  runner?: RunnerConfig | undefined;
}

/** The options of a runner in a configuration. Those that it shares with a poller stand beside. */
export type RunnerConfig = Pick<
  RunnerOptions,
  | 'run'
  | 'command'
  | 'commands'
  | 'cwd'
  | 'env'
  | 'grace'
  | 'backoff'
  | 'stuckAfter'
  | 'onStuck'
  | 'maxHold'
>;

/** A configuration whose kinds have their functions typed by their schemas. */
export type TypedConfig<K> = Omit<HoldfastConfig, 'kinds'> & {
  kinds?: { [N in keyof K]: KindOptions<K[N]> } | undefined;
};

/** Returns its argument. It tells editors the type of a configuration. */
export function defineConfig<K>(config: TypedConfig<K>): HoldfastConfig {
  return config as HoldfastConfig;
}
