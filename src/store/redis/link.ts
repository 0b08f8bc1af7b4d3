import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { dialSocket } from './socket-link.ts';

/** What Holdfast needs of one connection to one Redis, whoever's client is behind it. It sends each command once, at once. */
export interface Link {
  send(args: readonly string[]): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /** Ends it now; what is under way is answered with an error. */
  destroy(): void;
}

export type MessageListener = (message: string, channel: string) => void;

/** One attempt to connect. */
export interface Attempt {
  readonly timeoutMs: number;
  /** Ends the attempt, and nothing but the attempt. */
  readonly signal: AbortSignal;
  /** Called when the link has ended by itself, or before it was made. May be called more than once. */
  onEnd(why: string): void;
}

/** Makes links to where the truth lies: one address, or wherever the sentinels say. */
export interface Dialer {
  /** How to name that in messages: without secrets. */
  readonly name: string;
  dial(attempt: Attempt): Promise<Link>;
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** How to be let in. */
export interface Credentials {
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  /** Present where the connection is to be encrypted. */
  readonly tls?: TlsOptions;
}

/** Dials one address. */
export function endpointDialer(name: string, at: Endpoint, credentials: Credentials): Dialer {
  return { name, dial: (attempt) => dialSocket(at, credentials, attempt) };
}

/** A link for a few questions: its attempt's signal ends it also once it has been made. */
export async function dialBriefly(
  endpoint: Endpoint,
  credentials: Credentials,
  attempt: Attempt,
): Promise<Link> {
  const link = await dialSocket(endpoint, credentials, attempt);
  if (attempt.signal.aborted) link.destroy();
  attempt.signal.addEventListener('abort', link.destroy);
  return link;
}

/** Whatever a node-redis client was made for: ours never queues while offline, never reconnects, never resends. */
export const NODE_REDIS_RULES = {
  RESP: 2,
  disableOfflineQueue: true,
  // Its own time limit only rejects, and costs a timer a command; ours ends the connection too.
  commandOptions: { timeout: 0 },
  maintNotifications: 'disabled',
} as const;

/** The part of a node-redis client that we use, of version 5 or later. */
export interface NodeRedisClient {
  sendCommand(args: string[]): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

export async function connectNodeRedis(client: NodeRedisClient, attempt: Attempt): Promise<Link> {
  client.on('error', (error) => attempt.onEnd(error.message || error.name));
  const destroy = () => {
    // Throws where it has been closed already.
    try {
      client.destroy();
    } catch {}
  };
  attempt.signal.addEventListener('abort', destroy);
  try {
    await client.connect();
  } catch (error) {
    destroy();
    throw error;
  } finally {
    attempt.signal.removeEventListener('abort', destroy);
  }
  return {
    send: (args) => client.sendCommand(args as string[]),
    subscribe: async (channel, listener) => void (await client.subscribe(channel, listener)),
    unsubscribe: async (channel) => void (await client.unsubscribe(channel)),
    destroy,
  };
}
