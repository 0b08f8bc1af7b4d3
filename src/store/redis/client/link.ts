import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { dialSocket } from './socket-link.ts';

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
