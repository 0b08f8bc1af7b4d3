/**
 * Leases for programs in any language: acquire, renew, release, transfer. The client is the holder,
 * so any API process serves its next request. See `docs/http-leases.md`.
 */
import { z } from 'zod';
import { durationMs } from '../../core/duration.ts';
import { ConfigError, LeaseNotHeldError } from '../../core/errors.ts';
import { isName, NAME_RULE } from '../../core/ids.ts';
import type { RemoteGrant, RemoteLease } from '../../lease/remote-leases.ts';
import { clientClosedRequest } from '../http/error-mapping.ts';
import { Problem } from '../http/problem.ts';
import { type Caller, type Route, routeGroup } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { fenceSchema, keyParams, meantFenceSchema } from './json/lease-input.ts';

const holdingRoute = routeGroup({ group: 'leases', tenants: 'yes' });
const PATH = '/api/v3/leases/{key}';
/** Load balancers close connections on which nothing happens for longer. */
const MAX_WAIT_MS = 30_000;
const MIN_RETRY_MS = 1_000;

const holderRule = `a holder is ${NAME_RULE}, and does not begin with '!'`;
const holderSchema = z
  .string({ error: holderRule })
  .refine((holder) => isName(holder) && !holder.startsWith('!'), { error: holderRule });
const durationSchema = z.union([z.number(), z.string()], {
  error: 'must be milliseconds, or text such as 30s',
});
const waitSchema = durationSchema.superRefine((wait, context) => {
  const message = `must be at most ${MAX_WAIT_MS / 1_000}s: send the request again to wait longer`;
  if (waitOf(wait) > MAX_WAIT_MS) context.addIssue({ code: 'custom', message });
});
const ttlSchema = durationSchema.optional().meta({
  description:
    'How long the lease lasts without a renewal: milliseconds, or text such as 30s. Default 30s; at most the maxTtl of the store.',
});
const ownFields = {
  holder: holderSchema.meta({ description: 'The name that the lease was acquired with.' }),
  fence: meantFenceSchema.meta({ description: 'The fence that the lease was granted with.' }),
};

const acquireBody = z
  .strictObject({
    holder: holderSchema.meta({
      description:
        'Names the client. Choose a random name for each lease, such as a UUID: the store takes equal names for one holder.',
    }),
    ttl: ttlSchema,
    wait: waitSchema.optional().meta({
      description: 'How long to wait for a key that is held; default: do not wait.',
    }),
    fenceFloor: meantFenceSchema.optional().meta({
      description: 'The new fence is at least this. Pass the fence that a refused write saw.',
    }),
  })
  .meta({ id: 'AcquireLease' });
const renewBody = z.strictObject({ ...ownFields, ttl: ttlSchema }).meta({ id: 'RenewLease' });
const releaseBody = z.strictObject(ownFields).meta({ id: 'ReleaseLease' });
const transferBody = z
  .strictObject({
    ...ownFields,
    successor: holderSchema.meta({ description: 'The holder that may claim the lease next.' }),
  })
  .meta({ id: 'TransferLease' });

const grantSchema = z
  .object({
    key: z.string(),
    holder: z.string(),
    fence: fenceSchema,
    ttlMs: z.number().int().meta({
      description:
        'How long the lease lasts in the store. Count it from when you sent the request, and stop some time before it is over.',
    }),
    guardSql: z.string().optional().meta({
      description:
        'On PostgreSQL, when acquired: run it first in your transaction, which then cannot commit without the lease.',
    }),
  })
  .meta({ id: 'LeaseGrant' });
const releasedSchema = z
  .object({
    key: z.string(),
    released: z.boolean().meta({ description: 'False: the lease had ended before.' }),
  })
  .meta({ id: 'LeaseReleased' });
const transferredSchema = z
  .object({
    key: z.string(),
    successor: z.string(),
    windowMs: z.number().int().meta({
      description: 'How long the successor has to acquire the key. After that it is free.',
    }),
  })
  .meta({ id: 'LeaseTransferred' });

export function leaseHoldingRoutes(server: ServerContext): Route[] {
  return [acquireRoute(server), renewRoute(server), releaseRoute(server), transferRoute(server)];
}

function acquireRoute({ holdfast }: ServerContext): Route {
  return holdingRoute({
    method: 'POST',
    path: PATH,
    access: 'v3:write',
    summary: 'Acquire a lease',
    description:
      'The client is the holder: it renews the lease, and counts by itself until when it may act. Repeated with the same holder, it grants the key again with a new fence.',
    params: keyParams,
    body: acquireBody,
    responses: { 200: { description: 'The lease is held.', body: grantSchema } },
    problems: ['lease-held', 'store-quarantined'],
    async handle({ params: { key }, body, caller, signal, gone }) {
      const options = { ...body, signal };
      const result = await holdfast.remoteLeases
        .acquire(keyFor(caller, key), options)
        .catch((error: unknown) => {
          throw gone.aborted ? clientClosedRequest() : error;
        });
      if (!('ok' in result)) return { body: grantJson(result, key) };
      if (result.reason === 'quarantine') throw quarantined(result.expiresInMs);
      throw held(result);
    },
  });
}

function renewRoute({ holdfast }: ServerContext): Route {
  return holdingRoute({
    method: 'POST',
    path: `${PATH}/renew`,
    access: 'v3:write',
    summary: 'Renew a lease',
    description: 'Safe to repeat. Renew three times per TTL.',
    params: keyParams,
    body: renewBody,
    responses: { 200: { description: 'The lease is still held.', body: grantSchema } },
    problems: ['lease-not-held'],
    async handle({ params: { key }, body: { ttl, ...own }, caller }) {
      const lease = { key: keyFor(caller, key), ...own };
      const grant = await asProblem(holdfast.remoteLeases.renew(lease, ttl));
      return { body: grantJson(grant, key) };
    },
  });
}

function releaseRoute({ holdfast }: ServerContext): Route {
  return holdingRoute({
    method: 'POST',
    path: `${PATH}/release`,
    access: 'v3:write',
    summary: 'Release a lease',
    description: 'Safe to repeat: a release ends only the lease with this fence.',
    params: keyParams,
    body: releaseBody,
    responses: { 200: { description: 'The lease is over.', body: releasedSchema } },
    problems: [],
    async handle({ params: { key }, body, caller }) {
      const lease: RemoteLease = { key: keyFor(caller, key), ...body };
      return { body: { key, released: await holdfast.remoteLeases.release(lease) } };
    },
  });
}

function transferRoute({ holdfast }: ServerContext): Route {
  return holdingRoute({
    method: 'POST',
    path: `${PATH}/transfer`,
    access: 'v3:write',
    summary: 'Transfer a lease',
    description:
      'Ends the lease and keeps the key for the successor, which acquires it under its own name.',
    params: keyParams,
    body: transferBody,
    responses: { 200: { description: 'The successor may acquire it.', body: transferredSchema } },
    problems: ['lease-not-held'],
    async handle({ params: { key }, body: { successor, ...own }, caller }) {
      const lease = { key: keyFor(caller, key), ...own };
      const { windowMs } = await asProblem(holdfast.remoteLeases.transfer(lease, successor));
      return { body: { key, successor, windowMs } };
    },
  });
}

/** Tenants have keys of their own: two tenants may use the same name. */
function keyFor({ tenant }: Caller, key: string): string {
  if (tenant === null) return key;
  const own = `tenant:${tenant}:${key}`;
  if (isName(own)) return own;
  throw new ConfigError({ field: 'key', value: key, rule: 'it is too long with your tenant' });
}

function grantJson({ holder, fence, ttlMs, guardSql }: RemoteGrant, key: string) {
  return { key, holder, fence: String(fence), ttlMs, guardSql };
}

function waitOf(wait: number | string): number {
  try {
    return durationMs(wait, 'wait');
  } catch {
    // The lease refuses it, with the rule.
    return 0;
  }
}

function held({ holder, fence, expiresInMs, waitedMs }: HeldResult): Problem {
  const expiry = Number.isFinite(expiresInMs) ? Math.ceil(expiresInMs) : null;
  return new Problem('lease-held', {
    detail: 'Another holder has the lease. Nothing was changed. Pass wait to wait for it.',
    retryAfterMs: Math.min(Math.max(expiresInMs, MIN_RETRY_MS), MAX_WAIT_MS),
    facts: { holder, fence: String(fence), expiresInMs: expiry, waitedMs: Math.round(waitedMs) },
  });
}

interface HeldResult {
  readonly holder: string;
  readonly fence: number;
  readonly expiresInMs: number;
  readonly waitedMs: number;
}

function quarantined(expiresInMs: number): Problem {
  return new Problem('store-quarantined', {
    detail:
      'The store may have lost leases that are still held, so it grants none for a while. Holders keep theirs and can renew them.',
    retryAfterMs: Math.max(expiresInMs, MIN_RETRY_MS),
  });
}

async function asProblem<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof LeaseNotHeldError)) throw error;
    const { current, currentFence } = error;
    throw new Problem('lease-not-held', {
      detail:
        'The store does not name this holder and this fence. Stop the work under the lease, and acquire it again.',
      facts: { current, currentFence: String(currentFence) },
    });
  }
}
