/** Schemas of the fleet, for `/api/v3/fleet`, `/api/v3/fleet/live` and `/api/v3/targets/{id}`. */
import { z } from 'zod';

const TARGET_REASONS = [
  'kept',
  'moving',
  'late',
  'expiring',
  'foreign',
  'free',
  'unplaced',
  'quarantine',
  'revoked',
  'garbage',
  'unsettled',
  'paused',
] as const;

const momentSchema = z.number().int().meta({ description: 'Milliseconds since 1970.' });
const expirySchema = z.number().int().nullable().meta({
  description: 'Milliseconds until its lease expires; null: it has none, or it never expires.',
});

const vitalsSchema = z
  .object({
    ttlMs: z.number().meta({ description: 'How long a lease lasts without a renewal.' }),
    renewEveryMs: z.number(),
    renewP50Ms: z.number().nullable().meta({ description: 'How long its recent renewals took.' }),
    renewP99Ms: z.number().nullable(),
    loopDelayMs: z.number().meta({ description: 'The longest recent delay of its event loop.' }),
  })
  .meta({ id: 'Vitals', description: 'The health of an instance, as it reports it.' });

export const memberSchema = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'The readable part of its id.' }),
    weight: z.number().int().meta({ description: 'Its share, relative to the others.' }),
    isDraining: z
      .boolean()
      .meta({ description: 'It hands over its targets, and takes no new ones.' }),
    isForeign: z
      .boolean()
      .meta({ description: 'It is not a Holdfast instance, so the plan gives it no targets.' }),
    owned: z.number().int().meta({ description: 'How many targets it owns.' }),
    quota: z.number().int().meta({ description: 'How many it should own.' }),
    expiresInMs: z
      .number()
      .int()
      .meta({ description: 'Milliseconds until its heartbeat expires.' }),
    beatTtlMs: z.number().int().nullable().meta({ description: 'How long a heartbeat lasts.' }),
    version: z
      .string()
      .nullable()
      .meta({ description: 'Its version of Holdfast, if it reports one.' }),
    startedAt: momentSchema.nullable(),
    vitals: vitalsSchema.nullable(),
  })
  .meta({ id: 'Member', description: 'One instance of the fleet.' });

const indexSchema = z.number().int().meta({ description: 'An index in `names`; -1 for none.' });

export const rowSchema = z
  .tuple([
    z.string(),
    indexSchema,
    indexSchema,
    indexSchema,
    indexSchema,
    z.enum(TARGET_REASONS),
    expirySchema,
  ])
  .meta({
    id: 'TargetRow',
    description:
      'A target: id, owner, planned owner, preferred owner, pinned owner, reason, expiresInMs. Instances are indexes in `names`.',
  });

const namesSchema = z.array(z.string()).meta({ description: 'The instances that rows refer to.' });
const roundTripSchema = z.number().meta({ description: 'Round trip to the store.' });

export const pictureSchema = z
  .object({
    at: momentSchema,
    roundTripMs: roundTripSchema,
    members: z.array(memberSchema),
    names: namesSchema,
    targets: z.array(rowSchema),
  })
  .meta({ id: 'FleetPicture', description: 'All instances and targets at one moment.' });

export const changeSchema = z
  .object({
    at: momentSchema,
    roundTripMs: roundTripSchema,
    members: z.array(memberSchema).optional(),
    names: namesSchema.optional(),
    targets: z.array(rowSchema).optional(),
    removed: z.array(z.string()).optional(),
  })
  .meta({ id: 'FleetChange', description: 'What has changed.' });

const instanceSchema = z.string().nullable();

const sampleSchema = z.object({ at: momentSchema, tookMs: z.number(), ok: z.boolean() });

export const targetSchema = z
  .object({
    id: z.string(),
    owner: instanceSchema,
    planned: instanceSchema.meta({ description: 'The instance that should own it.' }),
    preferred: instanceSchema.meta({ description: 'The instance that hashing prefers.' }),
    pinned: instanceSchema.meta({ description: 'The instance that an operator moved it to.' }),
    reason: z.enum(TARGET_REASONS),
    expiresInMs: expirySchema,
    why: z.string().meta({ description: 'The reason as a sentence.' }),
    isPaused: z.boolean(),
    url: z.string().nullable(),
    everyMs: z.number().nullable(),
    timeoutMs: z.number().nullable(),
    command: z.string().nullable().meta({ description: 'The name of its command.' }),
    fence: z.string().meta({ description: 'A decimal number as text; "0": never held.' }),
    lastResult: z
      .object({
        at: momentSchema,
        by: z.string(),
        ok: z.boolean(),
        tookMs: z.number(),
        error: z.string().optional(),
        value: z.unknown().optional(),
        state: z
          .enum(['running', 'waiting', 'silent', 'stuck'])
          .optional()
          .meta({ description: 'How its task is doing; absent for a target that is polled.' }),
        failures: z
          .number()
          .int()
          .optional()
          .meta({ description: 'Failed polls, or ends of its task, in a row.' }),
        nextAt: momentSchema
          .optional()
          .meta({ description: 'When it is polled or started again after a failure.' }),
      })
      .nullable(),
    recent: z.array(sampleSchema).meta({ description: 'Its last polls, the oldest first.' }),
  })
  .meta({ id: 'Target', description: 'A target, its owner and its last polls.' });
