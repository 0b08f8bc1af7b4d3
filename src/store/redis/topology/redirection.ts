import { OutcomeUnknownError, StoreUnreachableError } from '../../../core/errors.ts';
import { isErrorReply } from '../client/replies.ts';

/**
 * Errors of a server that has executed nothing: another server has the key, or the Cluster is
 * changing.
 */
const REDIRECTIONS = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY)\b/;

/** Their meaning in an error message, when the time limit is over. */
const MEANING: Readonly<Record<string, string>> = {
  ASK: 'the key is moving to another server',
  TRYAGAIN:
    'the key is moving to another server, and grants are made there once its slot has arrived',
  MOVED: 'the key has moved to another server',
  CLUSTERDOWN: 'the Cluster does not serve all slots at the moment',
};

/** The error of a Cluster's server that names another server, or asks to try again later. */
export class RedirectionError extends Error {
  get isAsk(): boolean {
    return this.message.startsWith('ASK ');
  }

  get isMoved(): boolean {
    return this.message.startsWith('MOVED ');
  }

  /**
   * `ASK <slot> <host:port>`, the same for MOVED. Without a host, it means the sender's own host,
   * at that port.
   */
  addressFrom(from: string): string {
    const address = this.message.split(' ')[2] ?? '';
    return address.startsWith(':') ? from.slice(0, from.lastIndexOf(':')) + address : address;
  }

  get meaning(): string {
    return MEANING[this.message.split(' ', 1)[0] ?? ''] ?? this.message;
  }
}

/**
 * Resolves with the answer of the server: a reply, a `RedirectionError`, or another error. Rejects
 * if no answer came.
 */
export function replyOf(sending: Promise<unknown>): Promise<unknown> {
  return sending.catch((error: unknown) => {
    if (!isErrorReply(error)) throw error;
    return REDIRECTIONS.test(error.message) ? new RedirectionError(error.message) : error;
  });
}

/**
 * Turns an unknown outcome from before the request was sent into `STORE_UNREACHABLE`: the request
 * was not executed.
 */
export function unsent(error: unknown): never {
  if (!(error instanceof OutcomeUnknownError)) throw error;
  const { store, operation, message: why } = error;
  throw new StoreUnreachableError({ store, operation, why }, { cause: error });
}
