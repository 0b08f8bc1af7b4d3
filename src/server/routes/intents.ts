/** Where clients say what they want. It is accepted or makes no sense; whether it can be had is for workers to find out. */
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
import { includes, lackingScope } from '../http/auth.ts';
import { type Caller, type Route, route } from '../http/route.ts';
import { tenantOf } from '../http/tenant.ts';
import type { ServerParts } from '../parts.ts';
import { idSchema } from './json/schemas.ts';

const START_RULE = `it is a whole number of milliseconds from 0 to ${LATEST_START_MS}`;
const TYPE_RULE = 'it is one of stream.start, vod.start, stream.stop';

const refSchema = z
  .string()
  .refine(isRef, { error: REF_RULE })
  .meta({ description: `Text of whoever names it: ${REF_RULE}.` });
const startSchema = z
  .number()
  .refine(isStartMs, { error: START_RULE })
  .meta({ type: 'integer', minimum: 0, maximum: LATEST_START_MS });
const profileSchema = idSchema
  .optional()
  .meta({ description: `How it is to be run; default ${DEFAULT_PROFILE}.` });
const clientSchema = idSchema
  .optional()
  .meta({ description: 'Who needs it, counted once for each session; default the token.' });

const streamStart = z
  .strictObject({
    type: z.literal('stream.start'),
    serviceRef: refSchema,
    profile: profileSchema,
    clientId: clientSchema,
  })
  .meta({ id: 'StreamStart', description: 'Starts a channel, or finds that it has been started.' });

const vodStart = z
  .strictObject({
    type: z.literal('vod.start'),
    recordingId: refSchema,
    profile: profileSchema,
    startMs: startSchema.optional().meta({
      description: 'Where in the recording; starts within one second share a session. Default 0.',
    }),
    start_ms: startSchema.optional().meta({ description: 'Another name of startMs.' }),
    clientId: clientSchema,
  })
  .refine(({ startMs, start_ms }) => startMs === undefined || start_ms === undefined, {
    path: ['start_ms'],
    error: 'it is another name of startMs: give one of them',
    // Also where other fields are wrong: all is told at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })
  .meta({ id: 'VodStart', description: 'Plays a recording from a time on.' });

const streamStop = z
  .strictObject({
    type: z.literal('stream.stop'),
    sessionId: idSchema,
    force: z.boolean().optional().meta({
      description: 'Stops it whoever else needs it; needs the scope v3:admin.',
    }),
    clientId: clientSchema,
  })
  .meta({
    id: 'StreamStop',
    description:
      'Says that the client does not need a session any more; the last who says so stops it.',
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
      description:
        'A start found the session there already; a stop left it in the state it was in.',
    }),
    clients: z.number().int(),
    links: z.object({ self: z.string() }),
  })
  .meta({ id: 'Accepted' });

export function intentRoutes({ intents }: ServerParts): Route[] {
  return [
    route({
      method: 'POST',
      path: '/api/v3/intents',
      access: 'v3:write',
      tenants: 'yes',
      group: 'intents',
      summary: 'Start or stop something',
      description:
        'Accepted means: it is in the store, and a worker will see to it. What comes of it is the state of its session. ' +
        'To send the same again is safe: it leads to the same session until that has ended.',
      body: intentSchema,
      answers: {
        202: {
          description: 'It is accepted. Location leads to its session.',
          body: acceptedSchema,
        },
      },
      problems: ['not-found', 'lease-busy', 'session-crowded', 'store-quarantined'],
      async handle({ body, caller, base, gone }) {
        if (body.type === 'stream.stop' && body.force === true && !isAdmin(caller))
          throw lackingScope('v3:admin');
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
  return { tenant: tenantOf(caller), client: clientId ?? caller.tokenId };
}

function isAdmin({ scope }: Caller): boolean {
  return includes(scope, 'v3:admin');
}

/** As the core has it: one name for each field, and none for what was not said. */
function intentOf(wanted: z.output<typeof intentSchema>): Intent {
  const { type } = wanted;
  if (type === 'stream.stop') {
    const { sessionId, force = false } = wanted;
    return { type, sessionId, force };
  }
  const { profile = DEFAULT_PROFILE } = wanted;
  if (type === 'stream.start') return { type, serviceRef: wanted.serviceRef, profile };
  const { recordingId, startMs, start_ms } = wanted;
  return { type, recordingId, profile, startMs: startMs ?? start_ms ?? 0 };
}
