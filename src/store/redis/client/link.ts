import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { Clock } from '../../../core/clock.ts';
import { dialSocket } from './socket-connection.ts';

/**
 * One connection to one Redis, of Holdfast's own client or an adopted one. It sends each command
 * once, at once.
 */
export interface Link {
  /** Sends a command. Rejects with `UnsentError` if the deadline is over before it is written. */
  send(args: readonly string[], deadline?: Deadline | undefined): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /**
   * Ends the link now. Unanswered commands are rejected, and are not delivered any more if
   * possible.
   */
  destroy(): void;
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

/** How to authenticate. */
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
  const attempt = { timeoutMs: Math.ceil(timeoutMs), signal: over.signal, onEnd: () => {} };
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
