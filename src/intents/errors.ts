import { defineError } from '../core/errors.ts';

/**
 * The other instances have a secret for idempotency. This one would start their requests a second
 * time.
 */
export class SecretMissingError extends defineError(
  'SECRET_MISSING',
  'unavailable',
)<object>(
  () =>
    'the other instances have a secret for idempotency, and this one has none. Set HOLDFAST_IDEM_SECRET to the same value here.',
) {}

/** The session has as many clients as it may have. */
export class SessionCrowdedError extends defineError(
  'SESSION_CROWDED',
  'busy',
)<{
  session: string;
  clients: number;
}>(
  ({ session, clients }) =>
    `session '${session}' has ${clients} clients, and takes no more. Clients that no longer need it should stop it; or let many users share one client id.`,
) {}
