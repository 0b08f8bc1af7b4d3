/** What goes wrong below, as a client is told. Whatever is not known here is nobody's business but ours: it says nothing of itself. */
import {
  ConfigError,
  HoldfastError,
  LeaseHeldError,
  StoreQuarantinedError,
  StoreRefusedError,
} from '../../core/errors.ts';
import { SessionUnreadableError } from '../../fleet/targets/errors.ts';
import { Problem } from './problem.ts';

/** A store that is away is asked for again at once by nobody who follows this, and found soon after it is back. */
const STORE_RETRY_MS = 1_000;
const BUSY_RETRY_MS = 1_000;
/** Where a lease has no expiry, or one far away: it may be released long before. */
const LONGEST_RETRY_MS = 30_000;

/** The problem that an error is, or null for one that should not have happened. */
export function problemOf(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (!(error instanceof HoldfastError)) return null;
  if (error instanceof ConfigError) return invalid(error);
  if (error instanceof LeaseHeldError) return busy(error);
  if (error instanceof StoreQuarantinedError) return quarantined(error);
  if (error instanceof SessionUnreadableError) return unreadable(error);
  switch (error.code) {
    case 'SESSION_NOT_FOUND':
      return new Problem('not-found', { detail: 'There is no session with this id.' });
    case 'MEMBER_NOT_FOUND':
      return new Problem('not-found', { detail: 'No instance with this id is alive.' });
    case 'TRANSFER_REFUSED':
      return new Problem('conflict', {
        detail:
          'The instance drains, or is of another make, and can not be given targets. Nothing was changed.',
      });
    case 'SESSION_EXISTS':
      return new Problem('session-exists', {
        detail: 'Nothing was changed. Choose another id, or delete the session that has it.',
      });
    case 'REVISION_CONFLICT':
      return new Problem('conflict', {
        detail: 'Others went on changing it meanwhile; nothing was changed here. Try again.',
      });
    case 'SESSION_CROWDED':
      return new Problem('session-crowded', {
        detail: 'So many clients share this session that it takes no more.',
        retryAfterMs: BUSY_RETRY_MS,
      });
    case 'SECRET_MISSING':
      return new Problem('not-ready', {
        detail:
          'Nothing was changed. Ask another instance: this one is not set up yet, and /readyz says why.',
        retryAfterMs: BUSY_RETRY_MS,
      });
    case 'KEY_FOREIGN':
      return foreign();
    case 'VALUE_TOO_LARGE':
      return new Problem('body-too-large', { detail: error.message });
    case 'STORE_REFUSED':
      return isForeignKey(error) ? foreign() : storeUnavailable();
    case 'STORE_UNREACHABLE':
    case 'STORE_UNSUITABLE':
    case 'CLOSED':
    case 'OVERLOADED':
      return storeUnavailable();
    case 'OUTCOME_UNKNOWN':
      return outcomeUnknown();
    default:
      return null;
  }
}

/** For the record: the client that it would be told to has gone. */
export function clientGone(): Problem {
  return new Problem('request-timeout', {
    detail:
      'The client closed the connection before its request was carried out. Nothing was changed.',
  });
}

export function outcomeUnknown(): Problem {
  return new Problem('outcome-unknown', {
    detail:
      'There was no answer in time: it may have happened, or not. To send an intent again is safe; else look first.',
    retryAfterMs: STORE_RETRY_MS,
  });
}

export function storeUnavailable(): Problem {
  return new Problem('store-unavailable', {
    detail: 'Nothing was changed. It is tried again by itself; ask again in a moment.',
    retryAfterMs: STORE_RETRY_MS,
  });
}

/** The field and its rule; never the value, which the error has, too. */
function invalid({ field, rule }: ConfigError): Problem {
  return new Problem('invalid-request', { detail: `${field}: ${rule}`, errors: [{ field, rule }] });
}

function busy({ expiresInMs }: LeaseHeldError): Problem {
  return new Problem('lease-busy', {
    detail: 'Another session has the channel, or has just had it. Nothing was started.',
    retryAfterMs: Math.min(Math.max(expiresInMs, BUSY_RETRY_MS), LONGEST_RETRY_MS),
  });
}

/** `Retry-After` is all of the time left: to ask before it is over is in vain. */
function quarantined({ expiresInMs }: StoreQuarantinedError): Problem {
  return new Problem('store-quarantined', {
    detail:
      'The store may have forgotten leases that are held, and grants none for a while. Nothing was started.',
    retryAfterMs: Math.max(expiresInMs, BUSY_RETRY_MS),
  });
}

function foreign(): Problem {
  return new Problem('conflict', {
    detail:
      'Another program has put something else where Holdfast keeps this. Nothing was changed. Remove it there, or give Holdfast a prefix of its own.',
  });
}

/** Asking again would not help. */
function isForeignKey(error: HoldfastError): boolean {
  return error instanceof StoreRefusedError && /\bWRONGTYPE\b/.test(error.reply);
}

function unreadable({ why }: SessionUnreadableError): Problem {
  return new Problem('conflict', {
    detail: `Another program has written the session in a way that can not be read: ${why}. Correct it there, or delete it.`,
  });
}
