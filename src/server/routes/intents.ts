/** Accepts intents: requests to start or stop a session. Workers carry them out later. */
import { z } from 'zod';
import {
  DEFAULT_PROFILE,
  type Intent,
  isRef,
  isStartMs,
  LATEST_START_MS,
  REF_RULE,
  type Requester,
} from '../../intents/intent.ts';
import { SESSION_STATES } from '../../store/port/intent-store.ts';
import { includes, missingScope, visibleTenant } from '../http/auth.ts';
import { type Caller, type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { idSchema } from './json/schemas.ts';

const START_RULE = `must be a whole number of milliseconds from 0 to ${LATEST_START_MS}`;
const TYPE_RULE = 'must be one of stream.start, vod.start, stream.stop';

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
    force: z.boolean().optional().meta({
      description: 'Stops it even if other clients need it; needs the scope v3:admin.',
    }),
    clientId: clientSchema,
  })
  .meta({
    id: 'StreamStop',
    description:
      'The client no longer needs the session. It stops when its last client sends this.',
  });

export const intentSchema = z.discriminatedUnion('type', [streamStart, vodStart, streamStop], {
  error: TYPE_RULE,
});

export const acceptedSchema = z
  .object({
    sessionId: idSchema,
    state: z.enum(SESSION_STATES),
    kind: z.enum(['live', 'vod']),
    replayed: z.boolean().meta({
      description: 'The session existed already (start), or its state did not change (stop).',
    }),
    clients: z.number().int(),
    links: z.object({ self: z.string() }),
  })
  .meta({ id: 'Accepted' });

export function intentRoutes({ intents }: ServerContext): Route[] {
  return [
    route({
      method: 'POST',
      path: '/api/v3/intents',
      access: 'v3:write',
      tenants: 'yes',
      group: 'intents',
      summary: 'Start or stop a session',
      description:
        'Accepted means that the intent is in the store and a worker will carry it out. The session’s state shows the outcome. ' +
        'It is safe to send the same intent again: it leads to the same session until that ends.',
      body: intentSchema,
      responses: {
        202: {
          description: 'Accepted. `Location` is the address of its session.',
          body: acceptedSchema,
        },
      },
      problems: ['not-found', 'lease-busy', 'session-crowded', 'store-quarantined'],
      async handle({ body, caller, base, gone }) {
        if (body.type === 'stream.stop' && body.force === true && !isAdmin(caller))
          throw missingScope('v3:admin');
        const by = requesterOf(caller, body.clientId);
        const { session, isReplay } = await intents.submit(intentOf(body), by, {
          signal: gone,
        });
        const { id: sessionId, state, kind, clients } = session;
        const self = `${base}/api/v3/sessions/${sessionId}`;
        const accepted = { sessionId, state, kind, replayed: isReplay, clients, links: { self } };
        return { status: 202, body: accepted, headers: { Location: self } };
      },
    }),
  ];
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
  if (type === 'stream.stop') {
    const { sessionId, force = false } = body;
    return { type, sessionId, force };
  }
  const { profile = DEFAULT_PROFILE } = body;
  if (type === 'stream.start') return { type, serviceRef: body.serviceRef, profile };
  const { recordingId, startMs, start_ms } = body;
  return { type, recordingId, profile, startMs: startMs ?? start_ms ?? 0 };
}
