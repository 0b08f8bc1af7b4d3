/** Who holds what, according to the store; and the way to end it against the holder's will. */
import { z } from 'zod';
import { isForeignText, isName, NAME_RULE } from '../../base/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import { jsonFacts } from '../../telemetry/facts.ts';
import { type Route, route } from '../route.ts';
import { CURSOR_RULE, reasonSchema } from '../schemas.ts';

const PATH = '/api/v3/leases';
const KEY_RULE = `a key is ${NAME_RULE}`;
const MOST_CURSOR_BYTES = 1_024;

const fenceSchema = z.string().meta({
  pattern: '^\\d+$',
  description: 'A decimal number as text: it is longer than some readers’ numbers are exact.',
});
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
    revoked: z.boolean().meta({ description: 'False: nobody held it.' }),
    holder: z.string().optional(),
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
  })
  .meta({ id: 'Revoke' });

export interface LeaseParts {
  readonly holdfast: Pick<Holdfast, 'list' | 'inspect' | 'revoke'>;
}

export function leaseRoutes(parts: LeaseParts): Route[] {
  return [listRoute(parts), getRoute(parts), revokeRoute(parts)];
}

function listRoute({ holdfast }: LeaseParts): Route {
  return route({
    ...{ method: 'GET', path: PATH, access: 'v3:read', tenants: 'no', group: 'leases' },
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
    async handle({ query }) {
      const { leases, cursor } = await holdfast.list(query.cursor);
      const next =
        cursor === undefined ? {} : { cursor: Buffer.from(cursor).toString('base64url') };
      return { body: { leases: leases.map((lease) => jsonFacts({ ...lease })), ...next } };
    },
  });
}

function getRoute({ holdfast }: LeaseParts): Route {
  return route({
    ...{ method: 'GET', path: `${PATH}/{key}`, access: 'v3:read', tenants: 'no' },
    ...{ group: 'leases', summary: 'Look at a lease' },
    description: 'Who holds it. One that nobody holds is free, not unknown.',
    params: keyParams,
    answers: { 200: { description: 'How it is.', body: stateSchema } },
    problems: [],
    async handle({ params: { key } }) {
      const lease = await holdfast.inspect(key);
      if (lease.kind === 'failed') throw lease.error;
      const { kind: state, ...facts } = lease;
      return { body: { key, state, ...jsonFacts(facts) } };
    },
  });
}

function revokeRoute({ holdfast }: LeaseParts): Route {
  return route({
    ...{ method: 'POST', path: `${PATH}/{key}/revoke`, access: 'v3:admin', tenants: 'no' },
    ...{ group: 'leases', summary: 'Take a lease away from its holder' },
    description:
      'Its next renewal tells the holder. Nobody is granted the key while it may still act, unless `force` says so; fences tell the two apart.',
    params: keyParams,
    body: revokeBody,
    answers: {
      200: { description: 'Whom it was taken from, if anybody.', body: revocationSchema },
    },
    problems: [],
    async handle({ params: { key }, body: { reason, force = false } }) {
      const result = await holdfast.revoke(key, { reason, force });
      const act = { action: 'lease.revoke', subject: key, reason };
      return { body: { key, ...jsonFacts({ ...result }) }, ...(result.revoked && { act }) };
    },
  });
}
