/** Maps errors to problems. An unknown error becomes an internal problem without details. */
import {
  ConfigError,
  HoldfastError,
  LeaseHeldError,
  StoreQuarantinedError,
  StoreRefusedError,
} from '../../core/errors.ts';
import { SessionUnreadableError } from '../../fleet/targets/errors.ts';
import { KindFailedError, ParamsInvalidError } from '../../intents/errors.ts';
import { fieldSentence, invalidFields } from './input.ts';
import { Problem } from './problem.ts';

/** Short enough to notice a store that is back, long enough not to flood one that is away. */
const STORE_RETRY_MS = 1_000;
const BUSY_RETRY_MS = 1_000;
/** A lease may be released long before it expires. */
const MAX_RETRY_MS = 30_000;

/** The problem for an error; null for an unexpected error. */
export function problemFor(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (!(error instanceof HoldfastError)) return null;
  if (error instanceof ConfigError) return invalid(error);
  if (error instanceof LeaseHeldError) return busy(error);
  if (error instanceof StoreQuarantinedError) return quarantined(error);
  if (error instanceof SessionUnreadableError) return unreadable(error);
  if (error instanceof ParamsInvalidError) return invalidFields(error.errors);
  if (error instanceof KindFailedError) return kindFailed(error);
  switch (error.code) {
    case 'SESSION_NOT_FOUND':
      return new Problem('not-found', { detail: 'There is no session or target with this id.' });
    case 'WORKFLOW_NOT_FOUND':
      return new Problem('not-found', { detail: 'There is no workflow with this id.' });
    case 'WORKFLOW_ENDED':
      return new Problem('conflict', {
        detail: 'The function of this workflow has returned, so no line waits for a signal.',
      });
    case 'WORKFLOW_STEPS_FULL':
      return new Problem('conflict', { detail: error.message });
    case 'MEMBER_NOT_FOUND':
      return new Problem('not-found', { detail: 'There is no live instance with this id.' });
    case 'TRANSFER_REFUSED':
      return new Problem('conflict', {
        detail:
          'The instance is draining, is not a Holdfast instance, or lacks the command of the target. Nothing was changed.',
      });
    case 'SESSION_EXISTS':
      return new Problem('session-exists', {
        detail:
          'The id is already in use. Nothing was changed. Choose another id, or delete the target that has it.',
      });
    case 'REVISION_CONFLICT':
      return new Problem('conflict', {
        detail:
          'Other clients changed it at the same time. This request changed nothing. Try again.',
      });
    case 'SESSION_CROWDED':
      return new Problem('session-crowded', {
        detail: 'This session has reached its limit of clients.',
        retryAfterMs: BUSY_RETRY_MS,
      });
    case 'SECRET_MISSING':
      return new Problem('not-ready', {
        detail:
          'This instance is not set up yet; /readyz says why. Nothing was changed. Use another instance.',
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

/** For log and metrics: the client has closed the connection and reads no response. */
export function clientClosedRequest(): Problem {
  return new Problem('request-timeout', {
    detail: 'The client closed the connection before its request took effect. Nothing was changed.',
  });
}

export function outcomeUnknown(): Problem {
  return new Problem('outcome-unknown', {
    detail:
      'The store did not answer in time, so the change may have happened or not. An intent is safe to send again. For other requests, read the current state first.',
    retryAfterMs: STORE_RETRY_MS,
  });
}

export function storeUnavailable(): Problem {
  return new Problem('store-unavailable', {
    detail:
      'The store did not answer. Nothing was changed. The server reconnects automatically: try again in a moment.',
    retryAfterMs: STORE_RETRY_MS,
  });
}

/** Names the field and its rule. The value, which the error has too, is not repeated. */
function invalid({ field, rule }: ConfigError): Problem {
  return new Problem('invalid-request', {
    detail: fieldSentence(field, rule),
    errors: [{ field, rule }],
  });
}

function busy({ expiresInMs }: LeaseHeldError): Problem {
  return new Problem('lease-busy', {
    detail: 'Another session holds the channel, or held it a moment ago. Nothing was started.',
    retryAfterMs: Math.min(Math.max(expiresInMs, BUSY_RETRY_MS), MAX_RETRY_MS),
  });
}

/** `Retry-After` is the whole rest of the quarantine: an earlier request would fail again. */
function quarantined({ expiresInMs }: StoreQuarantinedError): Problem {
  return new Problem('store-quarantined', {
    detail:
      'The store is in quarantine: it may have lost leases that are still held, so it grants none for a while. Nothing was started.',
    retryAfterMs: Math.max(expiresInMs, BUSY_RETRY_MS),
  });
}

/** An event has what the declaration threw. */
function kindFailed({ kind, part }: KindFailedError): Problem {
  return new Problem('internal', {
    detail: `The server’s declaration of kind '${kind}' failed: see its '${part}', and the event intent.refused. Nothing was started.`,
  });
}

function foreign(): Problem {
  return new Problem('conflict', {
    detail:
      'Another program uses a key of Holdfast for something else. Nothing was changed. Remove that key, or give Holdfast a prefix of its own.',
  });
}

/** A retry would not help. */
function isForeignKey(error: HoldfastError): boolean {
  return error instanceof StoreRefusedError && /\bWRONGTYPE\b/.test(error.reply);
}

function unreadable({ why }: SessionUnreadableError): Problem {
  return new Problem('conflict', {
    detail: `Another program wrote a record that Holdfast cannot read: ${why}. Correct it there, or delete it.`,
  });
}
