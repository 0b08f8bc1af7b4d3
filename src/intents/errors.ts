/** What can be wrong with an intent that makes sense. */
import { HoldfastError } from '../core/errors.ts';

/** Others have a secret for idempotency, and this instance has none: what it accepted, they would accept once more. */
export class SecretMissingError extends HoldfastError {
  readonly code = 'SECRET_MISSING';

  constructor() {
    super(
      'the other instances have a secret for idempotency, and this one has none. Set HOLDFAST_IDEM_SECRET to the same here.',
    );
  }
}

/** So many clients share the session that it takes no more. */
export class SessionCrowdedError extends HoldfastError {
  readonly code = 'SESSION_CROWDED';
  readonly session: string;
  readonly clients: number;

  constructor(facts: { session: string; clients: number }) {
    super(
      `session '${facts.session}' has ${facts.clients} clients, and takes no more. Those who need it no more should stop it; or let many ask under one client id.`,
    );
    this.session = facts.session;
    this.clients = facts.clients;
  }
}
