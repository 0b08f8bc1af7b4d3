/** Accepts intents: requests to start or stop a session. Workers carry them out later. */
import { z } from 'zod';
import {
  DEFAULT_PROFILE,
  INTENT_TYPES,
  type Intent,
  isRef,
  isStartMs,
  LATEST_START_MS,
  REF_RULE,
  type Requester,
} from '../../intents/intent.ts';
import type { Accepted } from '../../intents/intents.ts';
import { isKindName, KIND_NAME_RULE } from '../../intents/kind.ts';
import { SESSION_STATES } from '../../store/port/intent-store.ts';
import { includes, missingScope, visibleTenant } from '../http/auth.ts';
import { problemFor } from '../http/error-mapping.ts';
import { validated } from '../http/input.ts';
import { problemResponse } from '../http/problem.ts';
import { type Caller, type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { idSchema } from './json/schemas.ts';

const PATH = '/api/v3/intents';
const START_RULE = `must be a whole number of milliseconds from 0 to ${LATEST_START_MS}`;
const TYPE_RULE = `must be one of ${INTENT_TYPES.join(', ')}`;
const START_TYPE_RULE = 'must be one of start, stream.start, vod.start';
const STOP_RULE = 'send either sessionId, or kind and key';
/** Starts in one batch. */
const MAX_BATCH = 100;

const refSchema = z
  .string()
  .refine(isRef, { error: REF_RULE })
  .meta({ description: `Your name for it: ${REF_RULE}.` });
const startSchema = z
  .number()
  .refine(isStartMs, { error: START_RULE })
  .meta({ type: 'integer', minimum: 0, maximum: LATEST_START_MS });
const profileSchema = idSchema
  .optional()
  .meta({ description: `Which worker profile runs it; default ${DEFAULT_PROFILE}.` });
const clientSchema = idSchema.optional().meta({
  description: 'The client that needs it, counted once per session; default the token’s id.',
});

const kindSchema = z
  .string()
  .refine(isKindName, { error: KIND_NAME_RULE })
  .meta({ pattern: '^[A-Za-z][A-Za-z0-9_-]{0,31}$' });

const forceSchema = z.boolean().optional().meta({
  description: 'Stops it even if other clients need it; needs the scope v3:admin.',
});

const streamStart = z
  .strictObject({
    type: z.literal('stream.start'),
    serviceRef: refSchema,
    profile: profileSchema,
    clientId: clientSchema,
  })
  .meta({
    id: 'StreamStart',
    description: 'Starts a channel, or joins its session if it runs already.',
  });

const vodStart = z
  .strictObject({
    type: z.literal('vod.start'),
    recordingId: refSchema,
    profile: profileSchema,
    startMs: startSchema.optional().meta({
      description:
        'Position in the recording; default 0. Starts within the same second share a session.',
    }),
    start_ms: startSchema.optional().meta({ description: 'The same as `startMs`.' }),
    clientId: clientSchema,
  })
  .refine(({ startMs, start_ms }) => startMs === undefined || start_ms === undefined, {
    path: ['start_ms'],
    error: 'is another name of startMs: send only one of them',
    // Checked even if other fields are wrong, so that the problem lists all errors.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })
  .meta({ id: 'VodStart', description: 'Plays a recording from a position.' });

const streamStop = z
  .strictObject({
    type: z.literal('stream.stop'),
    sessionId: idSchema,
    force: forceSchema,
    clientId: clientSchema,
  })
  .meta({
    id: 'StreamStop',
    description:
      'The client no longer needs the session. It stops when its last client sends this.',
  });

/** Only that it is an object: the schema of the kind does the rest. */
const paramsSchema = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  { error: 'must be an object' },
);

const start = z
  .strictObject({
    type: z.literal('start'),
    kind: kindSchema.meta({ description: 'A declared kind.' }),
    key: refSchema.optional().meta({
      description: `Your name for the work: ${REF_RULE}. Default: what the kind makes of the params, or a new id.`,
    }),
    params: paramsSchema.optional().meta({
      type: 'object',
      additionalProperties: {},
      description:
        'What the work is to do. The kind has a schema for it. Default: an empty object.',
    }),
    clientId: clientSchema,
  })
  .meta({
    id: 'Start',
    description:
      'Starts a session of a declared kind, or finds the one that the same request started.',
  });

const stop = z
  .strictObject({
    type: z.literal('stop'),
    sessionId: idSchema.optional(),
    kind: kindSchema.optional(),
    key: refSchema.optional(),
    force: forceSchema,
    clientId: clientSchema,
  })
  .refine(
    ({ sessionId, kind, key }) =>
      sessionId === undefined
        ? kind !== undefined && key !== undefined
        : kind === undefined && key === undefined,
    { path: ['sessionId'], error: STOP_RULE },
  )
  .meta({
    id: 'Stop',
    description:
      'The client no longer needs the session `sessionId`, or the open sessions of a kind with this key.',
  });

export const intentSchema = z.discriminatedUnion(
  'type',
  [streamStart, vodStart, streamStop, start, stop],
  { error: TYPE_RULE },
);

/** Each start is validated for itself, so that one wrong start does not refuse the others. */
const batchedSchema = z.discriminatedUnion('type', [streamStart, vodStart, start], {
  error: START_TYPE_RULE,
});

export const acceptedSchema = z
  .object({
    sessionId: idSchema,
    state: z.enum(SESSION_STATES),
    kind: z.string(),
    key: z.string(),
    replayed: z.boolean().meta({
      description: 'The session existed already (start), or its state did not change (stop).',
    }),
    clients: z.number().int(),
    links: z.object({ self: z.string() }),
  })
  .meta({ id: 'Accepted' });

type AcceptedJson = z.input<typeof acceptedSchema>;

const stoppedSchema = z
  .object({ kind: z.string(), key: z.string(), sessions: z.array(acceptedSchema) })
  .meta({ id: 'Stopped', description: 'The sessions that a stop by key was about.' });

const batchSchema = z
  .object({
    results: z.array(
      z.union([
        z.object({ status: z.literal(202), accepted: acceptedSchema }),
        z.object({
          status: z.number().int(),
          problem: z.record(z.string(), z.unknown()),
        }),
      ]),
    ),
  })
  .meta({ id: 'BatchResults', description: 'One result for each start, in their order.' });

const batchBody = z
  .strictObject({
    starts: z
      .array(z.unknown())
      .min(1, { error: `must have 1 to ${MAX_BATCH} starts` })
      .max(MAX_BATCH, { error: `must have 1 to ${MAX_BATCH} starts` })
      .meta({ items: { anyOf: ['Start', 'StreamStart', 'VodStart'].map(refOf) } }),
  })
  .meta({ id: 'Batch' });

function refOf(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}

export function intentRoutes(server: ServerContext): Route[] {
  return [submitRoute(server), batchRoute(server)];
}

function submitRoute({ intents }: ServerContext): Route {
  return route({
    method: 'POST',
    path: PATH,
    isDirect: true,
    access: 'v3:write',
    tenants: 'yes',
    group: 'intents',
    summary: 'Start or stop a session',
    description:
      'Accepted means that the intent is in the store and a worker will carry it out. The session’s state shows the outcome. ' +
      'It is safe to send the same intent again: it leads to the same session until that ends. ' +
      'A session waits in the state `NEW` while no worker takes its kind.',
    body: intentSchema,
    responses: {
      202: {
        description:
          'Accepted. `Location` is the address of its session. A stop by key has the sessions that it was about.',
        body: z.union([acceptedSchema, stoppedSchema]),
      },
    },
    problems: ['not-found', 'lease-busy', 'session-crowded', 'store-quarantined'],
    async handle({ body, caller, base, gone }) {
      const isStop = body.type === 'stream.stop' || body.type === 'stop';
      if (isStop && body.force === true && !isAdmin(caller)) throw missingScope('v3:admin');
      const by = requesterOf(caller, body.clientId);
      if (body.type === 'stop' && body.kind !== undefined && body.key !== undefined) {
        const { kind, key, force = false } = body;
        const stopped = await intents.stopKey({ kind, key, force }, by, { signal: gone });
        const sessions = stopped.map((one) => acceptedJson(one, base));
        return { status: 202, body: { kind, key, sessions } };
      }
      const accepted = acceptedJson(
        await intents.submit(intentOf(body), by, { signal: gone }),
        base,
      );
      return { status: 202, body: accepted, headers: { Location: accepted.links.self } };
    },
  });
}

function batchRoute({ intents }: ServerContext): Route {
  return route({
    method: 'POST',
    path: `${PATH}/batch`,
    access: 'v3:write',
    tenants: 'yes',
    group: 'intents',
    summary: 'Start several sessions',
    description: `Up to ${MAX_BATCH} starts in one request. Each is accepted or refused for itself, as if it were sent alone: \`results\` has an answer for each, in their order.`,
    body: batchBody,
    responses: { 202: { description: 'One answer for each start.', body: batchSchema } },
    problems: [],
    async handle({ body, caller, base, gone }) {
      const each = async (
        sent: unknown,
      ): Promise<z.input<typeof batchSchema>['results'][number]> => {
        try {
          const one = validated(batchedSchema, sent);
          const by = requesterOf(caller, one.clientId);
          const accepted = await intents.submit(intentOf(one), by, { signal: gone });
          return { status: 202, accepted: acceptedJson(accepted, base) };
        } catch (error) {
          const problem = problemFor(error);
          if (problem === null) throw error;
          const { status, body: text } = problemResponse(problem, base);
          return { status, problem: JSON.parse(text) as Record<string, unknown> };
        }
      };
      return { status: 202, body: { results: await Promise.all(body.starts.map(each)) } };
    },
  });
}

function acceptedJson({ session, isReplay }: Accepted, base: string): AcceptedJson {
  const { id: sessionId, state, kind, target: key, clients } = session;
  const self = `${base}/api/v3/sessions/${sessionId}`;
  return { sessionId, state, kind, key, replayed: isReplay, clients, links: { self } };
}

function requesterOf(caller: Caller, clientId: string | undefined): Requester {
  return { tenant: visibleTenant(caller), client: clientId ?? caller.tokenId };
}

function isAdmin({ scope }: Caller): boolean {
  return includes(scope, 'v3:admin');
}

/** With defaults, and one name for each field. */
function intentOf(body: z.output<typeof intentSchema>): Intent {
  const { type } = body;
  if (type === 'stream.stop' || type === 'stop') {
    const { sessionId = '', force = false } = body;
    return { type, sessionId, force };
  }
  if (type === 'start') {
    const { kind, key, params = {} } = body;
    return key === undefined ? { type, kind, params } : { type, kind, key, params };
  }
  const { profile = DEFAULT_PROFILE } = body;
  if (type === 'stream.start') return { type, serviceRef: body.serviceRef, profile };
  const { recordingId, startMs, start_ms } = body;
  return { type, recordingId, profile, startMs: startMs ?? start_ms ?? 0 };
}
