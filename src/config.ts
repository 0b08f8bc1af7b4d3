import type { Duration } from './core/duration.ts';
import type { HttpPollOptions } from './fleet/poll/http/http-options.ts';
import type { Poll } from './fleet/poll/poll-scheduler.ts';
import type { TargetIds } from './fleet/targets/target-record.ts';
import type { IntentOptions } from './intents/intents.ts';
import type { RetentionOptions } from './retention.ts';
import type { MaxTtlOption } from './store/port/keyspaces.ts';
import type { WorkerOptions } from './worker/worker-options.ts';

/** What an instance can do: answer requests, poll its share of the targets, and run what intents have started. */
export const ROLES = ['api', 'poller', 'worker'] as const;
export type Role = (typeof ROLES)[number];

/** Where the API listens, and to whom. `docs/cli.md` says what each is for; the server checks them. */
export interface ApiConfig {
  /** Default 127.0.0.1. Without tokens it has to be an address that only this host reaches. */
  host?: string;
  /** Default 4747, or one that is free if that is taken. */
  port?: number;
  /** Who may ask, besides those that the environment names, where they are better kept. Without any, one is made and shown once. */
  tokens?: readonly {
    readonly id: string;
    readonly token: string | readonly [current: string, previous: string];
    readonly scope: 'v3:read' | 'v3:write' | 'v3:admin';
    readonly tenant?: string;
    readonly expiresAt?: string;
  }[];
  /** Networks that clients may be in, and proxies that are believed about it. */
  lan?: {
    /** `10.0.0.0/8`, `fd00::/8`, or single addresses. */
    readonly allow: readonly string[];
    /** Whose `X-Forwarded-For` is believed; default none. */
    readonly trustedProxies?: readonly string[];
  };
  /** Names this is reached under, besides `localhost` and bare addresses; default any. */
  hosts?: readonly string[];
  /** How much at once, and how often. What is too much is told to come back. */
  limits?: {
    /** Requests at once; default 1,000. */
    readonly inFlight?: number;
    /** For each token; default none. */
    readonly rate?: {
      readonly requestsPerSecond: number;
      /** How many may come at once after a pause; default what comes in a second, at least 1. */
      readonly burst?: number;
    };
  };
  /** Who may watch events, and how far behind they may be. */
  events?: {
    /** At the same time; default 5,000. */
    readonly clients?: number;
    /** With one token; default 100. */
    readonly clientsPerToken?: number;
    /** What may lie unread in the queue of one who does not keep up; default 1 MiB. */
    readonly queuedBytes?: number;
  };
  /** `open`: `/metrics` is for everybody who reaches it; default `token`. */
  metrics?: 'open' | 'token';
  /** How long a body may take to arrive; default 10 s. */
  bodyTimeout?: Duration;
  /** How long until whoever asked is told that there is no answer; default 15 s. */
  handlerTimeout?: Duration;
  /** How long the headers of a request may take to arrive; default 10 s. */
  headersTimeout?: Duration;
  /** How long all of a request may take to arrive; default 30 s. */
  requestTimeout?: Duration;
  /** How long a connection may be silent while something is being answered; default 60 s. */
  idleTimeout?: Duration;
  /** Connections at once; default 10,000. Those above it are not taken. */
  maxConnections?: number;
}

/** What `holdfast.config.mjs` may say; `config-schema.ts` checks it. A flag of the command line, or its environment, wins over it. */
export interface HoldfastConfig {
  /** Address of the store. One with a password belongs into the environment (`HOLDFAST_STORE`) instead. */
  store?: string;
  /** Put before every key in the store. */
  prefix?: string;
  /** `off`, for development only: a store that forgot leases grants them anew at once. Default `on`. */
  quarantine?: 'on' | 'off';
  /**
   * How long leases may last without a renewal: one bound, or one for each of `lease`, `poll` and `workflow`. Default 30 s, workflows
   * 5 min. The same for every process of the store.
   */
  maxTtl?: MaxTtlOption;
  /** SQLite only: what is durable is on the disk within a second (`everysec`, the default), or before its caller has an answer (`always`). */
  sync?: 'everysec' | 'always';
  /** `uuid`: only UUIDs may name sessions; default `any` safe id. */
  sessionIds?: TargetIds;

  /** For those who accept intents: `holdfast intents`, and `holdfast up` with the role `api`. Secrets belong into the environment. */
  intents?: Pick<IntentOptions, 'apiLeases'>;

  // The rest is for `holdfast up`.

  /** What the instance does; default all of it. */
  roles?: readonly Role[];
  /** For the role `api`. */
  api?: ApiConfig;
  /** How long what is over is kept: `{ sessions: '24h', deadLetters: '7d', history: '24h' }`. The same for all instances: the shortest counts. */
  retention?: RetentionOptions;

  /** Pools of scarce things, by name, of which each session needs one; default `{ tuners: 4 }`. The same for all workers. */
  resources?: NonNullable<WorkerOptions['resources']>;
  /** What runs for a session: a function, or a command. Default something small that can be seen. */
  pipelines?: NonNullable<WorkerOptions['pipelines']>;
  /** For the role `worker`. */
  worker?: Pick<WorkerOptions, 'name' | 'starts' | 'ttl' | 'grace'>;

  /** The readable part of the instance's id; default the host's name. */
  name?: string;
  /** This instance's share of the targets, relative to the others'; a whole number, default 1. */
  weight?: number;
  /** How often each target is polled, unless it says so itself; default 10 s. */
  every?: Duration;
  /** How long a lease lasts without a renewal; after a crash it takes this long until another takes over. Default 30 s. */
  ttl?: Duration;
  /** How long one poll may take before it is told to stop; default 30 s. */
  timeout?: Duration;
  /** How many polls run at once; default 64. */
  concurrency?: number;
  /** Whether what polls give is kept in the store; default on. */
  results?: 'on' | 'off';
  /** How often to look for sessions and instances that other programs put into the store; default 30 s. */
  discovery?: Duration | 'off';
  /** For the built-in poll. On the embedded store it may ask this host (`loopback`), else public addresses only. */
  http?: HttpPollOptions;
  /** Polls one target. Default: an HTTP request to its `url`. */
  poll?: Poll;
}

/** Gives back what it is given: for editors, which then know what a configuration may say. */
export function defineConfig(config: HoldfastConfig): HoldfastConfig {
  return config;
}
