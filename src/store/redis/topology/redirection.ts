import { OutcomeUnknownError, StoreUnreachableError } from '../../../core/errors.ts';
import { isErrorReply } from '../client/replies.ts';

/** Words of a server that has done nothing and knows who might, or that things are in motion. */
const IN_MOTION = /^(MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY)\b/;

/** What those words mean to somebody whose time ran out over them. */
const MEANING: Readonly<Record<string, string>> = {
  ASK: 'the key is on its way to another server',
  TRYAGAIN:
    'the key is on its way to another server, and grants are made there once its slot has arrived',
  MOVED: 'the key has gone to another server',
  CLUSTERDOWN: 'the Cluster does not serve all slots just now',
};

/** An answer of a server of a Cluster that sends us elsewhere, or asks us to come back later. */
export class Redirection {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  get isAsk(): boolean {
    return this.text.startsWith('ASK ');
  }

  get isMoved(): boolean {
    return this.text.startsWith('MOVED ');
  }

  /** `ASK <slot> <host:port>`, and so for MOVED. A server that knows no host of the other means its own, at that port. */
  addressFrom(from: string): string {
    const address = this.text.split(' ')[2] ?? '';
    return address.startsWith(':') ? from.slice(0, from.lastIndexOf(':')) + address : address;
  }

  get meaning(): string {
    return MEANING[this.text.split(' ', 1)[0] ?? ''] ?? this.text;
  }
}

/** A reply, or a redirection, or another error of the server as a value; what came instead of an answer is thrown. */
export function replyOf(sending: Promise<unknown>): Promise<unknown> {
  return sending.catch((error: unknown) => {
    if (!isErrorReply(error)) throw error;
    return IN_MOTION.test(error.message) ? new Redirection(error.message) : error;
  });
}

/** What went wrong before anything was sent: whatever became of it, nothing became of the request. */
export function unsent(error: unknown): never {
  if (!(error instanceof OutcomeUnknownError)) throw error;
  const { store, operation, message: why } = error;
  throw new StoreUnreachableError({ store, operation, why }, { cause: error });
}
