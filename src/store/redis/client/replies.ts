import {
  KeyForeignError,
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
} from '../../../core/errors.ts';
import { UnsentError } from './socket-connection.ts';

/** The advice for refusals that an operator can cause, by the first word of Redis' reply. */
const ADVICE: Record<string, string> = {
  OOM: 'Redis is out of memory: free some or raise maxmemory. Leases that are held can still be renewed.',
  READONLY:
    'This server is a replica; Holdfast drops the connection and looks for the primary again.',
  NOREPLICAS: 'Too few replicas are in sync (min-replicas-to-write); bring one back.',
  MISCONF: 'Redis cannot persist to disk and refuses writes; see its log.',
  BUSY: "A script blocks Redis; wait for it, or end it with 'SCRIPT KILL'.",
  LOADING: 'Redis is still loading its data; Holdfast tries again automatically.',
  NOPERM:
    'The Redis user lacks a right; grant the commands, keys and channels that docs/redis.md lists.',
  NOAUTH: 'Redis wants a password; put it into the URL: redis://user:password@host:port.',
  WRONGPASS:
    'User name or password is wrong; check the URL. For passwords that rotate, pass redis.credentials.',
  CROSSSLOT: 'This is a Redis Cluster: open it as redis+cluster://host:port.',
  CLUSTERDOWN: 'The Cluster does not serve all slots; Holdfast tries again automatically.',
};

/** Replies of a server that cannot serve leases: its connection is dropped. */
const WRONG_SERVER = new Set(['READONLY', 'LOADING', 'MASTERDOWN', 'NOAUTH']);

export function isWrongServer(reply: string): boolean {
  return WRONG_SERVER.has(firstWord(reply));
}

/**
 * Whether an error is a reply of Redis. Compared by name: the adopted client may have a class of
 * its own.
 */
export function isErrorReply(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  for (let type = error.constructor; type?.name; type = Object.getPrototypeOf(type)) {
    if (type.name === 'ErrorReply' || type.name === 'ReplyError') return true;
  }
  return false;
}

export interface Where {
  readonly store: string;
  readonly operation: string;
}

/** An error reply of Redis, as a `StoreRefusedError`. */
export function refused(reply: string, where: Where): StoreRefusedError {
  const advice = ADVICE[firstWord(reply)] ?? 'Nothing was changed.';
  return new StoreRefusedError({ ...where, reply: reply.slice(0, 200), advice });
}

/** What went wrong with one key of a batch. */
export function keyFailure(reply: string, key: string, where: Where): Error {
  if (firstWord(reply) === 'WRONGTYPE')
    return new KeyForeignError({ key, found: 'a value of another type' });
  if (firstWord(reply) === 'FOREIGN')
    return new KeyForeignError({ key, found: 'a fence record that is no number' });
  if (firstWord(reply) === 'LARGE')
    return new KeyForeignError({ key, found: `a value of ${reply.split(' ')[1]} bytes` });
  return refused(reply, where);
}

/** The errors of node-redis and ioredis for commands that they have not sent. */
const UNSENT_BY_NODE_REDIS = /^Client(Offline|Closed)Error$/;
const UNSENT_BY_IOREDIS = /^Stream isn't writeable/;

/** An error that came instead of a reply. */
export function noReply(error: unknown, where: Where, afterMs: number): Error {
  const why = error instanceof Error ? error.message || error.name : String(error);
  const unsent =
    error instanceof UnsentError ||
    (error instanceof Error &&
      (UNSENT_BY_NODE_REDIS.test(error.constructor.name) || UNSENT_BY_IOREDIS.test(error.message)));
  if (unsent) return new StoreUnreachableError({ ...where, why }, { cause: error });
  return new OutcomeUnknownError({ ...where, afterMs, why }, { cause: error });
}

/** How scripts report a missing right: without a first word of its own. */
const LACKS_RIGHT = /can't (run this command|access at least one)|ACL failure in script/;

function firstWord(reply: string): string {
  if (LACKS_RIGHT.test(reply)) return 'NOPERM';
  const word = reply.slice(0, reply.search(/[\s:]|$/));
  return word === 'ERR' ? (reply.split(/\s+/, 2)[1] ?? '') : word.replace(/^-/, '');
}
