/** Schemas that several routes share. */
import { z } from 'zod';
import { isForeignText, isTargetId, TARGET_ID_RULE } from '../../../core/ids.ts';
import { OUTCOMES, REASONS } from '../../../intents/intent-session.ts';
import { SESSION_STATES } from '../../../store/port/intent-store.ts';

export const idSchema = z
  .string()
  .refine(isTargetId, { error: TARGET_ID_RULE })
  .meta({ pattern: '^[A-Za-z0-9._:~-]{1,128}$' });

export const idParams = z.strictObject({ id: idSchema });

export const CURSOR_RULE = 'must be the cursor of the previous page, unchanged';
export const DEFAULT_PAGE = 100;
const MAX_PAGE = 1_000;
const LIMIT_RULE = `must be a whole number from 1 to ${MAX_PAGE}`;

/** The number of items on a page. */
export const limitSchema = z
  .string({ error: LIMIT_RULE })
  .regex(/^([1-9]\d{0,2}|1000)$/, { error: LIMIT_RULE })
  .transform(Number)
  .meta({
    description: `Maximum number of items, from 1 to ${MAX_PAGE}; default ${DEFAULT_PAGE}.`,
  });

/** Logs and lists repeat the reason. */
const MAX_REASON_BYTES = 512;
const REASON_RULE = `must be text of 1 to ${MAX_REASON_BYTES} bytes`;

/** Why an operator does something. */
export const reasonSchema = z
  .string()
  .refine((text) => isForeignText(text, MAX_REASON_BYTES) && text.trim() !== '', {
    error: REASON_RULE,
  })
  .meta({
    description: `Why, in 1 to ${MAX_REASON_BYTES} bytes of text. The audit log has it.`,
  });

const momentSchema = z.string().meta({ format: 'date-time' });

const runSchema = z.object({
  id: idSchema,
  tenant: idSchema,
  key: z.string().meta({ description: 'What it is listed by: its key, channel or recording.' }),
  state: z.enum(SESSION_STATES),
  reason: z.enum(REASONS).nullable().meta({ description: 'Why it ended.' }),
  outcome: z.enum(OUTCOMES).nullable().meta({ description: 'How it ended.' }),
  worker: z.string().nullable().meta({ description: 'The instance that runs it, or ran it last.' }),
  slot: z.string().nullable().meta({ description: 'The slot it has, or had last.' }),
  clients: z.number().int().meta({ description: 'How many clients need it.' }),
  createdAt: momentSchema,
  changedAt: momentSchema,
  revision: z.number().int(),
  losses: z.number().int().meta({ description: 'How often its worker was lost.' }),
  failures: z.number().int().meta({ description: 'How often it failed and was tried again.' }),
  progress: z
    .unknown()
    .optional()
    .meta({ description: 'What its pipeline reports while it runs.' }),
  detail: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ description: 'How its pipeline ended: exit code, running time, last lines.' }),
});

const liveSchema = runSchema.extend({
  kind: z.literal('live'),
  serviceRef: z.string(),
  profile: idSchema,
});

const vodSchema = runSchema.extend({
  kind: z.literal('vod'),
  recordingId: z.string(),
  startMs: z.number().int(),
  profile: idSchema,
});

const declaredSchema = runSchema
  .extend({
    kind: z.string().meta({ description: 'A declared kind.' }),
    params: z.unknown().meta({ description: 'What the work is to do, as its kind validated it.' }),
  })
  .meta({ id: 'DeclaredSession', description: 'A session of a declared kind.' });

const targetFields = {
  id: idSchema,
  url: z.string().optional(),
  everyMs: z
    .number()
    .optional()
    .meta({ description: 'The polling interval; default the poller’s.' }),
  timeoutMs: z
    .number()
    .optional()
    .meta({ description: 'How long one poll may take; default the poller’s.' }),
  command: z
    .string()
    .optional()
    .meta({ description: 'The name of its command; default the runner’s.' }),
  isPaused: z.boolean(),
  revision: z.number().int(),
};

export const targetRecordSchema = z
  .object(targetFields)
  .meta({ id: 'TargetRecord', description: 'A target: what the fleet polls, and how often.' });

export const pollSessionSchema = z
  .object({ ...targetFields, kind: z.literal('poll') })
  .meta({ id: 'PollSession', description: 'A target, in the form of `/api/v3/sessions`.' });

export const intentSessionSchema = z
  .union([liveSchema, vodSchema, declaredSchema])
  .meta({ id: 'IntentSession', description: 'A session that an intent started.' });

export const sessionSchema = z
  .union([liveSchema, vodSchema, pollSessionSchema, declaredSchema])
  .meta({ id: 'Session' });

/** Records in the store that are not valid targets. */
export const unreadableSchema = z.array(z.object({ id: z.string(), why: z.string() }));
