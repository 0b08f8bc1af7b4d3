/**
 * The parts of a user's client that Holdfast uses. They have a file of their own, so that a process
 * with another store does not load this one.
 */
import type { Socket } from 'node:net';
import type { MessageListener } from './link.ts';

/** The part of a node-redis client that we use, of version 5 or later. */
export interface NodeRedisClient {
  sendCommand(args: string[], options?: { abortSignal?: AbortSignal }): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** A node-redis client, of version 5 or later, as far as we use it. */
export interface AdoptableNodeRedis extends NodeRedisClient {
  duplicate(overrides: object): NodeRedisClient;
  readonly options?: { readonly socket?: object };
}

/**
 * An ioredis client, of version 5 or later, as far as we use it. Sentinels in its options are
 * watched.
 */
export interface AdoptableIoredis {
  duplicate(overrides: object): IoredisClient;
  readonly options: object;
}

export interface IoredisClient {
  /** The socket of the present connection. */
  readonly stream?: Socket | null;
  connect(): Promise<void>;
  disconnect(): void;
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
}

export type AdoptableClient = AdoptableNodeRedis | AdoptableIoredis;

/** Whether a value looks like a client, so that an error may say which client is needed. */
export function isAdoptable(value: unknown): value is AdoptableClient {
  return (
    typeof value === 'object' &&
    value !== null &&
    'duplicate' in value &&
    typeof value.duplicate === 'function'
  );
}
