/** The fleet as it goes over the wire: to those who look once, and to those who watch. */
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
  description: 'Of its lease, in milliseconds; null: there is none, or it never ends.',
});

const vitalsSchema = z
  .object({
    ttlMs: z.number().meta({ description: 'How long a lease lasts without a renewal.' }),
    renewEveryMs: z.number(),
    renewP50Ms: z.number().nullable().meta({ description: 'How long its renewals took, lately.' }),
    renewP99Ms: z.number().nullable(),
    loopDelayMs: z.number().meta({ description: 'By how much its event loop was late at most.' }),
  })
  .meta({ id: 'Vitals', description: 'How an instance is doing, as it says itself.' });

export const memberSchema = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'The readable part of its id.' }),
    weight: z.number().int().meta({ description: 'Its share, relative to the others.' }),
    isDraining: z.boolean().meta({ description: 'It hands over what it owns, and takes no more.' }),
    isForeign: z.boolean().meta({ description: 'It is of another make: given nothing.' }),
    owned: z.number().int().meta({ description: 'How many targets it owns.' }),
    quota: z.number().int().meta({ description: 'How many it should own.' }),
    expiresInMs: z.number().int().meta({ description: 'When its heartbeat runs out.' }),
    beatTtlMs: z.number().int().nullable().meta({ description: 'How long a heartbeat lasts.' }),
    version: z.string().nullable().meta({ description: 'Of Holdfast, where it says so.' }),
    startedAt: momentSchema.nullable(),
    vitals: vitalsSchema.nullable(),
  })
  .meta({ id: 'Member', description: 'One instance of the fleet.' });

const placeSchema = z.number().int().meta({ description: 'Its place in `names`; -1: nobody.' });

export const rowSchema = z
  .tuple([
    z.string(),
    placeSchema,
    placeSchema,
    placeSchema,
    placeSchema,
    z.enum(TARGET_REASONS),
    expirySchema,
  ])
  .meta({
    id: 'TargetRow',
    description:
      'A target: id, owner, who should own it, whom it likes best, whom it is pinned to, why it is where it is, expiresInMs. Instances by their place in `names`.',
  });

const namesSchema = z.array(z.string()).meta({ description: 'The instances that rows speak of.' });
const roundTripSchema = z.number().meta({ description: 'How long the store took to answer.' });

export const pictureSchema = z
  .object({
    at: momentSchema,
    roundTripMs: roundTripSchema,
    members: z.array(memberSchema),
    names: namesSchema,
    targets: z.array(rowSchema),
  })
  .meta({ id: 'FleetPicture', description: 'Who takes part, and who owns what, at one moment.' });

export const changeSchema = z
  .object({
    at: momentSchema,
    roundTripMs: roundTripSchema,
    members: z.array(memberSchema).optional(),
    names: namesSchema.optional(),
    targets: z.array(rowSchema).optional(),
    removed: z.array(z.string()).optional(),
  })
  .meta({ id: 'FleetChange', description: 'What is otherwise than it was.' });

const instanceSchema = z.string().nullable();

const sampleSchema = z.object({ at: momentSchema, tookMs: z.number(), ok: z.boolean() });

export const targetSchema = z
  .object({
    id: z.string(),
    owner: instanceSchema,
    planned: instanceSchema.meta({ description: 'Who should own it.' }),
    preferred: instanceSchema.meta({ description: 'Whom it likes best.' }),
    pinned: instanceSchema.meta({ description: 'Whom an operator has moved it to, for good.' }),
    reason: z.enum(TARGET_REASONS),
    expiresInMs: expirySchema,
    why: z.string().meta({ description: 'The reason in words.' }),
    url: z.string().nullable(),
    everyMs: z.number().nullable(),
    fence: z.string().meta({ description: 'A decimal number as text; "0": never held.' }),
    lastResult: z
      .object({
        at: momentSchema,
        by: z.string(),
        ok: z.boolean(),
        tookMs: z.number(),
        error: z.string().optional(),
        value: z.unknown().optional(),
      })
      .nullable(),
    recent: z.array(sampleSchema).meta({ description: 'Its last polls, the oldest first.' }),
  })
  .meta({ id: 'Target', description: 'Something that is polled, and who polls it.' });
