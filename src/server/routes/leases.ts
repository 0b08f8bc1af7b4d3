/** Who holds what, according to the store; and the way to end it against the holder's will. */
import { z } from 'zod';
import { isForeignText, isName, NAME_RULE } from '../../core/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import type { Intents } from '../../intents/intents.ts';
import { MAX_FENCE } from '../../lease/fence.ts';
import { jsonFacts } from '../../telemetry/facts.ts';
import { type Route, route } from '../http/route.ts';
import { CURSOR_RULE, reasonSchema } from './json/schemas.ts';
import { holdersFor } from './other-tenants.ts';

const PATH = '/api/v3/leases';
const KEY_RULE = `a key is ${NAME_RULE}`;
const MOST_CURSOR_BYTES = 1_024;

const fenceSchema = z.string().meta({
  pattern: '^\\d+$',
  description: 'A decimal number as text: it is longer than some readers’ numbers are exact.',
});
const FENCE_RULE = 'it is a fence, a decimal number as text';
const meantFenceSchema = z
  .string({ error: FENCE_RULE })
  .regex(/^\d{1,16}$/, { error: FENCE_RULE })
  .transform(Number)
  .refine((fence) => fence <= MAX_FENCE, { error: FENCE_RULE });
const expirySchema = z.number().int().nullable().meta({
  description: 'In how many milliseconds it ends unless it is renewed; null: never.',
});
const keySchema = z.string().refine(isName, { error: KEY_RULE });
const keyParams = z.strictObject({
  key: keySchema.meta({ description: 'Percent-encoded where it has slashes.' }),
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
      description: '`revoked`: kept free of holders while the one it was taken from may still act.',
    }),
    holder: z.string().optional(),
    fence: fenceSchema.meta({ description: 'The last one minted; "0": never held.' }),
    expiresInMs: expirySchema.optional(),
  })
  .meta({ id: 'LeaseState' });

export const revocationSchema = z
  .object({
    key: z.string(),
    revoked: z.boolean().meta({ description: 'False: the lease that was meant is over.' }),
    holder: z.string().nullable().optional().meta({
      description: 'Whom it was taken from; or, if it was not, who has the key now, null: nobody.',
    }),
    fence: fenceSchema.optional(),
    mayActForMs: z.number().int().optional().meta({
      description: 'For how long the revoked holder may still act.',
    }),
  })
  .meta({ id: 'Revocation' });

const listQuery = z.strictObject({
  cursor: z
    .string({ error: CURSOR_RULE })
    .transform((cursor) => Buffer.from(cursor, 'base64url').toString())
    .refine((cursor) => isForeignText(cursor, MOST_CURSOR_BYTES), { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'To go on where the page before ended.' }),
});

export const revokeBody = z
  .strictObject({
    reason: reasonSchema,
    force: z.boolean().optional().meta({
      description: 'Frees it at once: the revoked holder and the next may both act for a while.',
    }),
    fence: meantFenceSchema.optional().meta({
      description:
        'The fence of the lease that is meant, as you have seen it: a later holder is left alone. Default: that of the lease that is held now.',
    }),
  })
  .meta({ id: 'Revoke' });

/** What a request to revoke means to the library. */
export function revocationOf({ reason, force = false, fence }: z.infer<typeof revokeBody>) {
  return { reason, force, ...(fence !== undefined && { fence }) };
}

export interface LeaseParts {
  readonly holdfast: Pick<Holdfast, 'list' | 'inspect' | 'revoke'>;
  readonly intents: Pick<Intents, 'ofOthers'>;
}

export function leaseRoutes(parts: LeaseParts): Route[] {
  return [listRoute(parts), getRoute(parts), revokeRoute(parts)];
}

function listRoute({ holdfast, intents }: LeaseParts): Route {
  return route({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    tenants: 'no',
    group: 'leases',
    summary: 'List leases',
    description:
      'Those that are held, a page at a time; in no order on Redis. It walks the store, so it is for people, not for loops.',
    query: listQuery,
    answers: {
      200: {
        description: 'One page. It may be short, or empty, and yet not the last.',
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
      const shown = await holdersFor(
        intents,
        caller,
        leases.map(({ holder }) => holder),
      );
      const next =
        cursor === undefined ? {} : { cursor: Buffer.from(cursor).toString('base64url') };
      const facts = leases.map((lease) => jsonFacts({ ...lease, holder: shown(lease.holder) }));
      return { body: { leases: facts, ...next } };
    },
  });
}

function getRoute({ holdfast, intents }: LeaseParts): Route {
  return route({
    method: 'GET',
    path: `${PATH}/{key}`,
    access: 'v3:read',
    tenants: 'no',
    group: 'leases',
    summary: 'Look at a lease',
    description: 'Who holds it. One that nobody holds is free, not unknown.',
    params: keyParams,
    answers: { 200: { description: 'How it is.', body: stateSchema } },
    problems: [],
    async handle({ params: { key }, caller }) {
      const lease = await holdfast.inspect(key);
      if (lease.kind === 'failed') throw lease.error;
      const { kind: state, ...facts } = lease;
      if (lease.kind !== 'held') return { body: { key, state, ...jsonFacts(facts) } };
      const shown = await holdersFor(intents, caller, [lease.holder]);
      return { body: { key, state, ...jsonFacts({ ...facts, holder: shown(lease.holder) }) } };
    },
  });
}

function revokeRoute({ holdfast }: LeaseParts): Route {
  return route({
    method: 'POST',
    path: `${PATH}/{key}/revoke`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'leases',
    summary: 'Take a lease away from its holder',
    description:
      'Its next renewal tells the holder. Nobody is granted the key while it may still act, unless `force` says so; fences tell the two apart. Send the `fence` you have seen, and a repeated or late request leaves the next holder alone.',
    params: keyParams,
    body: revokeBody,
    answers: {
      200: { description: 'Whom it was taken from, if anybody.', body: revocationSchema },
    },
    problems: [],
    async handle({ params: { key }, body }) {
      const { reason } = body;
      const result = await holdfast.revoke(key, revocationOf(body));
      const act = { action: 'lease.revoke', subject: key, reason };
      return { body: { key, ...jsonFacts({ ...result }) }, ...(result.revoked && { act }) };
    },
  });
}
