import type { Duration } from './base/duration.ts';
import { ConfigError } from './base/errors.ts';
import { checkKnown, checkSwitch } from './base/options.ts';
import type { IntentOptions } from './intents/intents.ts';
import type { HttpPollOptions } from './polling/http-options.ts';
import type { Poll } from './polling/schedule.ts';
import type { RetentionOptions } from './retention.ts';
import type { SessionIds } from './session/session.ts';
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

/** What `holdfast.config.mjs` may say. A flag of the command line, or its environment, wins over it. */
export interface HoldfastConfig {
  /** Address of the store. One with a password belongs into the environment (`HOLDFAST_STORE`) instead. */
  store?: string;
  /** Put before every key in the store. */
  prefix?: string;
  /** `off`, for development only: a store that forgot leases grants them anew at once. Default `on`. */
  quarantine?: 'on' | 'off';
  /** `uuid`: only UUIDs may name sessions; default `any` safe id. */
  sessionIds?: SessionIds;

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

const TEXTS = ['store', 'prefix', 'name'] as const;
const KNOWN = new Set([
  ...['store', 'prefix', 'quarantine', 'sessionIds', 'name', 'weight', 'every', 'ttl', 'timeout'],
  ...['concurrency', 'results', 'discovery', 'http', 'poll', 'intents', 'roles', 'api'],
  ...['retention', 'resources', 'pipelines', 'worker'],
]);

const FOR_INTENTS = new Set(['apiLeases']);
const FOR_RETENTION = new Set(['sessions', 'deadLetters', 'history']);
const FOR_WORKER = new Set(['name', 'starts', 'ttl', 'grace']);
const FOR_RESOURCE = new Set(['slots', 'wait', 'key']);
const KINDS = new Set(['live', 'vod']);
const FOR_PIPELINE = new Set(['run', 'command', 'env', 'cwd', 'resource']);
const FOR_API = new Set([
  ...['host', 'port', 'tokens', 'lan', 'hosts', 'limits', 'events', 'metrics'],
  ...['bodyTimeout', 'handlerTimeout', 'headersTimeout', 'requestTimeout', 'idleTimeout'],
  'maxConnections',
]);

/** Gives back what it is given: for editors, which then know what a configuration may say. */
export function defineConfig(config: HoldfastConfig): HoldfastConfig {
  return config;
}

/** `config` if it is a configuration, or a `CONFIG_INVALID`. What is for the poller only, the poller checks. */
export function checkConfig(config: unknown): HoldfastConfig {
  checkKnown(config as object, KNOWN);
  const said = config as Record<string, unknown>;
  for (const field of TEXTS) {
    const value = said[field];
    if (value === undefined || typeof value === 'string') continue;
    throw new ConfigError({ field, value, rule: 'it has to be text' });
  }
  if (said.quarantine !== undefined) checkSwitch(said.quarantine, 'quarantine');
  checkSection('intents', said.intents, FOR_INTENTS);
  checkSection('api', said.api, FOR_API);
  checkSection('retention', said.retention, FOR_RETENTION);
  checkSection('worker', said.worker, FOR_WORKER);
  checkResources(said.resources);
  checkPipelines(said.pipelines);
  return config as HoldfastConfig;
}

/** Names are anybody's. How many there are, and for how long, the worker checks. */
function checkResources(said: unknown): void {
  checkSection('resources', said, null);
  for (const [name, pool] of Object.entries(said ?? {})) {
    if (typeof pool === 'number' || isTexts(pool)) continue;
    const field = `resources.${name}`;
    if (typeof pool !== 'object' || Array.isArray(pool)) {
      const rule =
        'it is how many there are, a list of what each is called, or { slots, wait, key }';
      throw new ConfigError({ field, value: pool, rule });
    }
    checkSection(field, pool, FOR_RESOURCE);
  }
}

function checkPipelines(said: unknown): void {
  checkSection('pipelines', said, KINDS);
  for (const [kind, pipeline] of Object.entries(said ?? {})) {
    if (typeof pipeline === 'function' || pipeline === undefined) continue;
    const field = `pipelines.${kind}`;
    checkSection(field, pipeline, FOR_PIPELINE);
    const { run, command } = pipeline as Record<string, unknown>;
    const isOne = (typeof run === 'function') !== isTexts(command);
    if (isOne && (run === undefined || command === undefined)) continue;
    const rule =
      "it is a function, { run: function }, or { command: ['program', 'argument', …] }; one of them";
    throw new ConfigError({ field, value: Object.keys(pipeline as object).join(', '), rule });
  }
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
}

/** What stands under a name that is not known may be a secret under a wrong one: it is not repeated. */
function checkSection(section: string, said: unknown, known: ReadonlySet<string> | null): void {
  if (said === undefined) return;
  if (typeof said !== 'object' || said === null || Array.isArray(said))
    throw new ConfigError({ field: section, value: said, rule: 'it is an object' });
  const unknown = Object.keys(said).find((name) => known?.has(name) === false);
  if (known === null || unknown === undefined) return;
  const secrets = section === 'intents' ? '. Secrets belong into HOLDFAST_IDEM_SECRET' : '';
  const rule = `there is no such option; there are ${[...known].join(', ')}${secrets}`;
  throw new ConfigError({ field: `${section}.${unknown}`, value: '(not shown)', rule });
}
