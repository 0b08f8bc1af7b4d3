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
    'this instance accepts no intents: the other instances use an idempotency secret, and this one has none, so it could start a repeated request twice. Set HOLDFAST_IDEM_SECRET to the value that the others have, and restart it.',
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
    `session '${session}' has ${clients} clients, the most allowed: this one was not added. Clients that are done should send their own stop, which ends the session for nobody else; or let several users share one client id.`,
) {}

/** The params of a start do not fit the schema of its kind. Nothing was written. */
export class ParamsInvalidError extends defineError(
  'PARAMS_INVALID',
  'invalid',
)<{
  /** The kind of the session. */
  kind: string;
  /** At least one. `value`: what was sent there. */
  errors: readonly {
    readonly field: string;
    readonly value: unknown;
    readonly rule: string;
  }[];
}>(({ kind, errors }) => {
  const [first, ...more] = errors.map(({ field, rule }) => `${field}: ${rule}`);
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  return `the params do not fit kind '${kind}': ${first}${rest}. Correct them and start it again.`;
}) {}

/** A function or schema of the declaration of a kind failed. Nothing was written. */
export class KindFailedError extends defineError(
  'KIND_FAILED',
  'internal',
)<{
  kind: string;
  /** The part of the declaration: `params`, `exclusive` or `same`. */
  part: string;
  why: string;
}>(
  ({ kind, part, why }) =>
    `could not accept a start of kind '${kind}': its ${part} ${why}. Correct the declaration of the kind.`,
) {}
