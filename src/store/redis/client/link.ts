import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { dialSocket } from './socket-link.ts';

/** What Holdfast needs of one connection to one Redis, whoever's client is behind it. It sends each command once, at once. */
export interface Link {
  /** Sends a command, unless its request is over by the time it would be written: then it fails with `UnsentError`. */
  send(args: readonly string[], deadline?: Deadline | undefined): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /** Ends it now; what is under way is answered with an error, and is not delivered any more where that can be helped. */
  destroy(): void;
}

/** Of a request: shared by all commands that it consists of. */
export interface Deadline {
  isOver(): boolean;
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
