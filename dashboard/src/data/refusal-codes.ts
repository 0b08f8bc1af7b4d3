/** Why the store refuses a step of a workflow, in plain words, by code. */
export const CODES = {
  STALE_EPOCH: {
    name: 'Outdated step',
    means: 'The workflow had moved on: the sender acted on an old state, or repeated a step.',
  },
  LEASE_VIOLATION: {
    name: 'Replaced sender',
    means: 'Another process had claimed the workflow, or an operator had revoked the lease.',
  },
  FUTURE_EPOCH: {
    name: 'Step out of order',
    means: 'An earlier step was missing, and the store applies steps in order only.',
  },
  LEASE_EXPIRED: {
    name: 'Expired lease',
    means: 'The lease of the sender had expired, so its process did not send the step.',
  },
} as const;

export type Code = keyof typeof CODES;

export function isCode(code: unknown): code is Code {
  return typeof code === 'string' && Object.hasOwn(CODES, code);
}

/** `Outdated step` for STALE_EPOCH; a code that is not known as it is. */
export function codeName(code: unknown): string {
  return isCode(code) ? CODES[code].name : String(code);
}
