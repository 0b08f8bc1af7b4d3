import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { Clock } from '../../../core/clock.ts';
import { type NatMap, type RedisLogin, reachedAt } from './link-options.ts';
import { dialSocket } from './socket-connection.ts';

/**
 * One connection to one Redis, of Holdfast's own client or an adopted one. It sends each command
 * once, at once.
 */
export interface Link {
  /** Sends a command. Rejects with `UnsentError` if the deadline is over before it is written. */
  send(args: readonly string[], deadline?: Deadline | undefined): Promise<unknown>;
  /** As `send`, without a promise: tells `answer` once, maybe before it returns. */
  submit?(args: readonly string[], deadline: Deadline | undefined, answer: Answer): void;
  subscribe(channel: string, listener: MessageListener): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /**
   * Ends the link now. Unanswered commands are rejected, and are not delivered any more if
   * possible.
   */
  destroy(): void;
}

/** Learns how a command ended. */
export interface Answer {
  resolve(reply: unknown): void;
  reject(error: unknown): void;
}

/** The deadline of a request, shared by all of its commands. */
export interface Deadline {
  isOver(): boolean;
}

export type MessageListener = (message: string, channel: string) => void;

/** One attempt to connect. */
export interface Attempt {
  readonly timeoutMs: number;
  /** Ends the attempt, and nothing but the attempt. */
  readonly signal: AbortSignal;
  /** What the connection is for, as CLIENT LIST shows it: `leases`, `data`, `hints`, … */
  readonly role?: string;
  /** Called when the link has ended, or could not be made. May be called more than once. */
  onEnd(why: string): void;
}

/** Makes links to one address, or to the primary that the sentinels name. */
export interface Dialer {
  /** The address as messages show it: without secrets. */
  readonly name: string;
  dial(attempt: Attempt): Promise<Link>;
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** The path of a server's socket on this host. */
export interface UnixSocket {
  readonly path: string;
}

/** How to authenticate. */
export interface Credentials {
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  /** Present where the connection is to be encrypted. */
  readonly tls?: TlsOptions;
  /** Called before each connection, where passwords rotate. */
  readonly ask?: () => Promise<RedisLogin>;
  /** The beginning of each connection's name in CLIENT LIST. */
  readonly clientName?: string;
}

/** How to reach servers by the addresses that they announce. */
export interface Access {
  readonly credentials: Credentials;
  readonly natMap?: NatMap | undefined;
}

/** Dials one server. */
export function endpointDialer(
  name: string,
  at: Endpoint | UnixSocket,
  credentials: Credentials,
): Dialer {
  return { name, dial: (attempt) => dialSocket(at, credentials, attempt) };
}

/** Dials the server that announces an address. */
export function announcedDialer(name: string, address: string, access: Access): Dialer {
  return {
    name,
    dial: async (attempt) =>
      dialSocket(reachedAt(address, access.natMap), access.credentials, attempt),
  };
}

export interface TimeLimit {
  readonly timeoutMs: number;
  /** Ends the call early. */
  readonly signal: AbortSignal;
}

/**
 * Runs a few commands over links that `dialBriefly` makes. The links end with `use`, with the time
 * limit, or with its signal.
 */
export async function briefly<T>(
  clock: Clock,
  { timeoutMs, signal }: TimeLimit,
  use: (attempt: Attempt, isLate: () => boolean) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  let isLate = false;
  const timer = clock.after(timeoutMs, () => {
    isLate = true;
    over.abort();
  });
  // Not AbortSignal.any: a long-lived signal keeps a reference to each signal made from it.
  const end = () => over.abort(signal.reason);
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  const attempt = {
    timeoutMs: Math.ceil(timeoutMs),
    signal: over.signal,
    role: 'topology',
    onEnd: () => {},
  };
  try {
    return await use(attempt, () => isLate);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', end);
    // Also ends links that are still being dialled.
    over.abort();
  }
}

/** Makes a link for a few commands. The attempt's signal ends it even after it was made. */
export async function dialBriefly(dialer: Pick<Dialer, 'dial'>, attempt: Attempt): Promise<Link> {
  const link = await dialer.dial(attempt);
  if (attempt.signal.aborted) link.destroy();
  attempt.signal.addEventListener('abort', link.destroy);
  return link;
}
