import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { type Clock, systemClock } from '../../../core/clock.ts';
import { ConfigError } from '../../../core/errors.ts';
import { type SentinelAddress, watchedDialer } from '../topology/sentinel-set.ts';
import type {
  AdoptableClient,
  AdoptableIoredis,
  AdoptableNodeRedis,
  NodeRedisClient,
} from './adoptable.ts';
import type {
  Attempt,
  Credentials,
  Deadline,
  Dialer,
  Endpoint,
  Link,
  MessageListener,
  UnixSocket,
} from './link.ts';
import { connectOrDestroy, nameLink, reset, TOO_LATE, UnsentError } from './socket-connection.ts';

const RULE =
  "it must be the client of node-redis 5 or later or of ioredis 5 or later, for one server or with sentinels; for a Cluster open 'redis+cluster://host:port,…'";

/**
 * Dials as a client does that the user already has: only its address and credentials are used.
 * Lease commands go over connections of their own, because a client that queues, reconnects or
 * resends would run them late.
 */
export function adopt(client: AdoptableClient, clock: Clock, clientName?: string): Dialer {
  const naming = clientName === undefined ? {} : { clientName };
  const named = (dial: Dialer['dial']) => async (attempt: Attempt) => {
    const link = await dial(attempt);
    nameLink(link, naming, attempt);
    return link;
  };
  if (isIoredis(client)) {
    const name = ioredisName(client.options);
    const dialer: Dialer = { name, dial: named((attempt) => dialIoredis(client, attempt)) };
    const sentinels = sentinelsOf(client.options, naming);
    return sentinels === null ? dialer : watchedDialer(dialer, sentinels, clock);
  }
  if (isNodeRedis(client)) {
    const name = nodeRedisName(client);
    return { name, dial: named((attempt) => dialNodeRedis(client, attempt)) };
  }
  throw new ConfigError({ field: 'store', value: client, rule: RULE });
}

function isIoredis(client: AdoptableClient): client is AdoptableIoredis {
  return (
    'call' in client &&
    typeof client.call === 'function' &&
    !('isCluster' in client && client.isCluster)
  );
}

function isNodeRedis(client: AdoptableClient): client is AdoptableNodeRedis {
  // Its clients for a Cluster or for sentinels have no such method, and lead to more than one
  // server.
  return 'sendCommand' in client && 'legacy' in client;
}

/**
 * Whatever a node-redis client was made for: ours never queues while offline, never reconnects,
 * never resends.
 */
const NODE_REDIS_RULES = {
  RESP: 2,
  disableOfflineQueue: true,
  // Its own time limit only rejects, and costs a timer a command; ours ends the connection too.
  commandOptions: { timeout: 0 },
  maintNotifications: 'disabled',
} as const;

function dialNodeRedis(client: AdoptableNodeRedis, attempt: Attempt): Promise<Link> {
  const socket = {
    ...client.options?.socket,
    reconnectStrategy: false,
    connectTimeout: attempt.timeoutMs,
    signal: attempt.signal,
  };
  return connectNodeRedis(
    client.duplicate({ ...NODE_REDIS_RULES, clientSideCache: undefined, socket }),
    attempt,
  );
}

async function connectNodeRedis(client: NodeRedisClient, attempt: Attempt): Promise<Link> {
  client.on('error', (error) => attempt.onEnd(error.message || error.name));
  const destroy = () => {
    // Throws where it has been closed already.
    try {
      client.destroy();
    } catch {}
  };
  await connectOrDestroy(destroy, attempt, async () => {
    await client.connect();
  });
  return new NodeRedisConnection(client, destroy);
}

interface Unwritten {
  readonly deadline: Deadline;
  readonly over: AbortController;
}

/**
 * node-redis writes its commands at the end of the turn. Until then a command can be aborted. So
 * deadlines are checked just before the write, in the same phase of the event loop.
 */
class NodeRedisConnection implements Link {
  readonly #client: NodeRedisClient;
  readonly destroy: () => void;
  #unwritten: Unwritten[] = [];

  constructor(client: NodeRedisClient, destroy: () => void) {
    this.#client = client;
    this.destroy = destroy;
  }

  async subscribe(channel: string, listener: MessageListener): Promise<void> {
    await this.#client.subscribe(channel, listener);
  }

  async unsubscribe(channel: string): Promise<void> {
    await this.#client.unsubscribe(channel);
  }

  async send(args: readonly string[], deadline?: Deadline): Promise<unknown> {
    if (deadline === undefined) return this.#client.sendCommand(args as string[]);
    const over = this.#judgeLater(deadline);
    try {
      return await this.#client.sendCommand(args as string[], { abortSignal: over.signal });
    } catch (error) {
      // Its own word for a command that it has not written.
      const isUnsent = error instanceof Error && error.constructor.name === 'AbortError';
      throw isUnsent ? new UnsentError(TOO_LATE, { cause: error }) : error;
    }
  }

  /** Aborts the commands of a request: one controller for all that are sent in the same turn. */
  #judgeLater(deadline: Deadline): AbortController {
    const last = this.#unwritten.at(-1);
    if (last?.deadline === deadline) return last.over;
    // Before the client is given the first command of the turn, and so before it plans its own
    // write.
    if (last === undefined) systemClock.afterInput(this.#judge);
    const over = new AbortController();
    this.#unwritten.push({ deadline, over });
    return over;
  }

  readonly #judge = (): void => {
    for (const { deadline, over } of this.#unwritten.splice(0)) if (deadline.isOver()) over.abort();
  };
}

async function dialIoredis(client: AdoptableIoredis, attempt: Attempt): Promise<Link> {
  const own = client.duplicate({
    lazyConnect: true,
    connectTimeout: attempt.timeoutMs,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    reconnectOnError: null,
    commandTimeout: undefined,
    socketTimeout: undefined,
    sentinelRetryStrategy: null,
    keyPrefix: '',
    stringNumbers: false,
    enableAutoPipelining: false,
    readOnly: false,
  });
  let why = 'the connection was closed';
  const listeners = new Map<string, MessageListener>();
  own.on('error', (error: Error) => {
    why = error.message || error.name;
    attempt.onEnd(why);
  });
  let isOver = false;
  own.on('close', () => {
    isOver = true;
    attempt.onEnd(why);
  });
  own.on('message', (channel: string, message: string) =>
    listeners.get(channel)?.(message, channel),
  );
  const destroy = () => {
    // ioredis would wait for the end of a closed socket, and keep the process alive for 2 s.
    if (isOver) return;
    isOver = true;
    if (own.stream) reset(own.stream);
    own.disconnect();
  };
  await connectOrDestroy(destroy, attempt, async () => {
    await own.connect();
  }).catch((error) => {
    // ioredis reports the cause as an event; the rejection only says that it failed.
    throw why === 'the connection was closed' ? error : new Error(why, { cause: error });
  });
  return {
    // It writes at once, so here is where it is decided.
    send: async ([command = '', ...args], deadline) => {
      if (deadline?.isOver()) throw new UnsentError(TOO_LATE);
      return own.call(command, ...args);
    },
    subscribe: async (channel, listener) => {
      listeners.set(channel, listener);
      await own.subscribe(channel);
    },
    unsubscribe: async (channel) => {
      listeners.delete(channel);
      await own.unsubscribe(channel);
    },
    destroy,
  };
}

/** Where an ioredis client finds its sentinels, or null where it has none. */
function sentinelsOf(
  options: object,
  naming: Pick<Credentials, 'clientName'>,
): SentinelAddress | null {
  const { sentinels, name, sentinelUsername, sentinelPassword, sentinelTLS } = options as {
    sentinels?: readonly { host?: string; port?: number }[] | null;
    name?: string;
    sentinelUsername?: string | null;
    sentinelPassword?: string | null;
    sentinelTLS?: TlsOptions;
  };
  if (!sentinels?.length) return null;
  return {
    endpoints: sentinels.map(({ host = 'localhost', port = 26_379 }) => ({ host, port })),
    primaryName: name ?? '',
    sentinelCredentials: {
      ...naming,
      ...(sentinelUsername && { username: sentinelUsername }),
      ...(sentinelPassword && { password: sentinelPassword }),
      ...(sentinelTLS && { tls: sentinelTLS }),
    },
  };
}

function nodeRedisName({ options }: AdoptableNodeRedis): string {
  const socket: Partial<Endpoint & UnixSocket> = options?.socket ?? {};
  const { host = 'localhost', port = 6379, path } = socket;
  return path !== undefined ? `redis+unix://${path}` : `redis://${host}:${port}`;
}

function ioredisName(options: object): string {
  const {
    host = '',
    port = 6379,
    path,
    sentinels,
    name,
  } = options as {
    host?: string;
    port?: number;
    path?: string | null;
    sentinels?: readonly { host?: string; port?: number }[] | null;
    name?: string;
  };
  if (!sentinels?.length && path) return `redis+unix://${path}`;
  if (!sentinels?.length) return `redis://${host || 'localhost'}:${port}`;
  const hosts = sentinels.map((each) => `${each.host ?? 'localhost'}:${each.port ?? 26379}`);
  return `redis+sentinel://${hosts.join(',')}/${name ?? ''}`;
}
