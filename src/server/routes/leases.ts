/** Leases in the store: list them, get one, revoke one. */
import { z } from 'zod';
import { isForeignText } from '../../core/ids.ts';
import { jsonFacts } from '../../telemetry/facts.ts';
import { type Route, routeGroup } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { holderNames } from './holder-names.ts';
import { fenceSchema, keyParams, meantFenceSchema } from './json/lease-input.ts';
import { CURSOR_RULE, reasonSchema } from './json/schemas.ts';

const leaseRoute = routeGroup({ group: 'leases', tenants: 'no' });
const PATH = '/api/v3/leases';
const MAX_CURSOR_BYTES = 1_024;

const expirySchema = z.number().int().nullable().meta({
  description: 'Milliseconds until it expires unless it is renewed; null: never.',
});
const leaseSchema = z
  .object({
    key: z.string(),
    holder: z.string(),
    fence: fenceSchema,
    expiresInMs: expirySchema,
  })
  .meta({ id: 'Lease', description: 'A lease that is held.' });

const stateSchema = z
  .object({
    key: z.string(),
    state: z.enum(['held', 'revoked', 'free']).meta({
      description: '`revoked`: blocked until its old holder can no longer act.',
    }),
    holder: z.string().optional(),
    fence: fenceSchema.meta({ description: 'The last one minted; "0": never held.' }),
    expiresInMs: expirySchema.optional(),
  })
  .meta({ id: 'LeaseState' });

export const revocationSchema = z
  .object({
    key: z.string(),
    revoked: z
      .boolean()
      .meta({ description: 'False: the lease with this fence had already ended.' }),
    holder: z.string().nullable().optional().meta({
      description:
        'The holder it was revoked from. If `revoked` is false: the present holder, null for none.',
    }),
    fence: fenceSchema.optional(),
    mayActForMs: z.number().int().optional().meta({
      description: 'How long the revoked holder may still act.',
    }),
  })
  .meta({ id: 'Revocation' });

const listQuery = z.strictObject({
  cursor: z
    .string({ error: CURSOR_RULE })
    .transform((cursor) => Buffer.from(cursor, 'base64url').toString())
    .refine((cursor) => isForeignText(cursor, MAX_CURSOR_BYTES), { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'Continues after the previous page.' }),
});

export const revokeBody = z
  .strictObject({
    reason: reasonSchema,
    force: z.boolean().optional().meta({
      description:
        'Frees the key at once (unsafe): the revoked holder and the next may both act for up to one TTL.',
    }),
    fence: meantFenceSchema.optional().meta({
      description:
        'The fence of the lease to revoke. A later holder keeps its lease. Default: the fence of the present lease.',
    }),
  })
  .meta({ id: 'Revoke' });

export function leaseRoutes(server: ServerContext): Route[] {
  return [listRoute(server), getRoute(server), revokeRoute(server)];
}

function listRoute({ holdfast, intents }: ServerContext): Route {
  return leaseRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'List leases',
    description:
      'Held leases, a page at a time; in no particular order on Redis. It scans the store, so do not call it in a loop.',
    query: listQuery,
    responses: {
      200: {
        description: 'One page. A page that is not the last may be short or empty.',
        body: z
          .object({
            leases: z.array(leaseSchema),
            cursor: z.string().optional().meta({ description: 'Absent on the last page.' }),
          })
          .meta({ id: 'LeasePage' }),
      },
    },
    problems: [],
    async handle({ query, caller }) {
      const { leases, cursor } = await holdfast.list(query.cursor);
      const holders = leases.map(({ holder }) => holder);
      const shown = await holderNames(intents, caller, holders);
      const next = cursor === undefined ? undefined : Buffer.from(cursor).toString('base64url');
      const facts = leases.map((lease) => jsonFacts({ ...lease, holder: shown(lease.holder) }));
      return { body: { leases: facts, cursor: next } };
    },
  });
}

function getRoute({ holdfast, intents }: ServerContext): Route {
  return leaseRoute({
    method: 'GET',
    path: `${PATH}/{key}`,
    access: 'v3:read',
    summary: 'Get a lease',
    description: 'Its state and holder. A key without a holder is `free`, not an error.',
    params: keyParams,
    responses: { 200: { description: 'The lease.', body: stateSchema } },
    problems: [],
    async handle({ params: { key }, caller }) {
      const lease = await holdfast.inspect(key);
      if (lease.kind === 'failed') throw lease.error;
      const { kind: state, ...facts } = lease;
      if (lease.kind !== 'held') return { body: { key, state, ...jsonFacts(facts) } };
      const shown = await holderNames(intents, caller, [lease.holder]);
      return { body: { key, state, ...jsonFacts({ ...facts, holder: shown(lease.holder) }) } };
    },
  });
}

function revokeRoute({ holdfast }: ServerContext): Route {
  return leaseRoute({
    method: 'POST',
    path: `${PATH}/{key}/revoke`,
    access: 'v3:admin',
    summary: 'Revoke a lease',
    description:
      'The holder’s next renewal fails. The key stays blocked until the old holder can no longer act, unless `force` is set; fences tell the two holders apart. With `fence`, a repeated or late request does not affect the next holder.',
    params: keyParams,
    body: revokeBody,
    responses: {
      200: { description: 'The holder it was revoked from, if any.', body: revocationSchema },
    },
    problems: [],
    async handle({ params: { key }, body }) {
      const { reason, force = false, fence } = body;
      const result = await holdfast.revoke(key, { reason, force, fence });
      const audit = result.revoked ? { action: 'lease.revoke', subject: key, reason } : undefined;
      return { body: { key, ...jsonFacts({ ...result }) }, audit };
    },
  });
}
