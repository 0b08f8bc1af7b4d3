/** Why there is no lock, in the words of redlock: resources, locks, and its settings. */
import {
  ClosedError,
  type HeldFacts,
  LeaseHeldError,
  LeaseLostError,
  type QuarantineFacts,
  StoreQuarantinedError,
} from '../core/errors.ts';
import { LOSS_TEXTS } from '../core/loss-reason.ts';
import { spanOf } from '../core/time-text.ts';
import { resourceOf } from './keys.ts';
import { CLIENT_ENDED } from './shared-holdfast.ts';

const LONGER = 'Raise retryCount or retryDelay to wait longer.';
const CI =
  "In CI, where no lock from before can exist, pass { quarantine: 'off' } as the third argument.";

/** The reason of an error, as a sentence. */
export function reasonOf(error: unknown): string {
  if (error instanceof LeaseHeldError) return `${heldReason(error)}${waited(error)} ${LONGER}`;
  if (error instanceof StoreQuarantinedError)
    return `${quarantineReason(error)}${waited(error)} ${LONGER} ${CI}`;
  if (error instanceof LeaseLostError)
    return `${LOSS_TEXTS[error.reason]}, after ${spanOf(error.heldForMs)}`;
  if (error instanceof ClosedError) return CLIENT_ENDED;
  return error instanceof Error ? error.message : String(error);
}

function heldReason({ key, reason, holder, fence, expiresInMs }: HeldFacts): string {
  const resource = resourceOf(key);
  const doesExpire = Number.isFinite(expiresInMs);
  if (reason === 'revoked') {
    const left = doesExpire ? `for ${spanOf(expiresInMs)} more` : 'until it is cleared';
    return `The resource '${resource}' was revoked, and stays blocked ${left}.`;
  }
  const until = doesExpire ? ` for ${spanOf(expiresInMs)} more` : '';
  return `The resource '${resource}' is locked by ${holder} with fence ${fence}${until}.`;
}

function quarantineReason({ key, expiresInMs }: QuarantineFacts): string {
  return (
    `The resource '${resourceOf(key)}' cannot be locked for ${spanOf(expiresInMs)} more: ` +
    'Redis was just started, or has lost data, and may have forgotten locks that are still held.'
  );
}

function waited({ waitedMs }: { waitedMs: number }): string {
  return waitedMs > 0 ? ` Waited ${spanOf(waitedMs)}.` : '';
}
