/** What several routes take and give. What text means is decided where it is used; here it is only asked. */
import { z } from 'zod';
import { isForeignText, isTargetId, TARGET_ID_RULE } from '../../../core/ids.ts';
import { OUTCOMES, REASONS } from '../../../intents/intent-session.ts';
import { SESSION_STATES } from '../../../store/port/intent-store.ts';

export const idSchema = z
  .string()
  .refine(isTargetId, { error: TARGET_ID_RULE })
  .meta({ pattern: '^[A-Za-z0-9._:~-]{1,128}$' });

export const idParams = z.strictObject({ id: idSchema });

/** Of every list that has pages. */
export const CURSOR_RULE = 'it is the cursor of the page before, as that had it';
export const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1_000;
const LIMIT_RULE = `it is a whole number from 1 to ${LARGEST_PAGE}`;

/** How many on a page. */
export const limitSchema = z
  .string({ error: LIMIT_RULE })
  .regex(/^([1-9]\d{0,2}|1000)$/, { error: LIMIT_RULE })
  .transform(Number)
  .meta({ description: `How many at most, ${LIMIT_RULE}; default ${DEFAULT_PAGE}.` });

/** Longest reason, in bytes: it stands in logs and lists. */
const MOST_REASON_BYTES = 512;
const REASON_RULE = `it is 1 to ${MOST_REASON_BYTES} bytes of text, for whoever finds it later`;

/** Why somebody takes something away. */
export const reasonSchema = z
  .string()
  .refine((text) => isForeignText(text, MOST_REASON_BYTES) && text.trim() !== '', {
    error: REASON_RULE,
  })
  .meta({ description: `Why: ${REASON_RULE}.` });

const momentSchema = z.string().meta({ format: 'date-time' });

const runSchema = z.object({
  id: idSchema,
  tenant: idSchema,
  profile: idSchema,
  state: z.enum(SESSION_STATES),
  reason: z.enum(REASONS).nullable().meta({ description: 'Why it has ended.' }),
  outcome: z.enum(OUTCOMES).nullable().meta({ description: 'What came of it.' }),
  worker: z.string().nullable().meta({ description: 'The instance that runs it, or ran it last.' }),
  slot: z.string().nullable().meta({ description: 'The slot it has, or had last.' }),
  clients: z.number().int().meta({ description: 'How many clients need it.' }),
  createdAt: momentSchema,
  changedAt: momentSchema,
  revision: z.number().int(),
  losses: z.number().int().meta({ description: 'How often a worker was lost with it.' }),
  progress: z.unknown().optional().meta({ description: 'What its pipeline says while it runs.' }),
  detail: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ description: 'How its pipeline ended: exit code, how long it ran, its last lines.' }),
});

const liveSchema = runSchema.extend({ kind: z.literal('live'), serviceRef: z.string() });

const vodSchema = runSchema.extend({
  kind: z.literal('vod'),
  recordingId: z.string(),
  startMs: z.number().int(),
});

export const pollSessionSchema = z
  .object({
    id: idSchema,
    kind: z.literal('poll'),
    url: z.string().optional(),
    everyMs: z.number().optional(),
    isPaused: z.boolean(),
    revision: z.number().int(),
  })
  .meta({ id: 'PollSession', description: 'Something that is polled.' });

export const intentSessionSchema = z
  .discriminatedUnion('kind', [liveSchema, vodSchema])
  .meta({ id: 'IntentSession', description: 'Something that an intent has started.' });

export const sessionSchema = z
  .discriminatedUnion('kind', [liveSchema, vodSchema, pollSessionSchema])
  .meta({ id: 'Session' });
