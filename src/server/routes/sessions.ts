/** Sessions of both sorts to look at; those that are polled also to add, change and delete. What an intent started, an intent stops. */
import { z } from 'zod';
import { SessionNotFoundError } from '../../fleet/targets/errors.ts';
import { InvalidRecord, readTargetRecord } from '../../fleet/targets/target-record.ts';
import { urlProblem } from '../../fleet/targets/target-url.ts';
import { SESSION_STATES } from '../../store/port/intent-store.ts';
import { Problem } from '../http/problem.ts';
import { type Caller, type Route, route } from '../http/route.ts';
import { tenantOf } from '../http/tenant.ts';
import type { ServerParts } from '../parts.ts';
import {
  CURSOR_RULE,
  DEFAULT_PAGE,
  idParams,
  idSchema,
  limitSchema,
  pollSessionSchema,
  sessionSchema,
} from './json/schemas.ts';
import { intentSessionJson, pollSessionJson } from './json/session-json.ts';
import { placeOf, sessionPage } from './json/session-pages.ts';

const PATH = '/api/v3/sessions';
const STATE_RULE = `it is one or more of ${SESSION_STATES.join(', ')}, with commas between them`;
/** Some id, to ask about other fields of a session. */
const SOME_ID = 'some';

const listQuery = z.strictObject({
  kind: z.enum(['poll', 'live', 'vod'], { error: 'it is one of poll, live, vod' }).optional(),
  state: z
    .union([z.string(), z.array(z.string())], { error: STATE_RULE })
    .transform((texts) => [texts].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(z.enum(SESSION_STATES, { error: STATE_RULE })))
    .optional()
    .meta({ description: `Only sessions from intents have these: ${STATE_RULE}. Repeatable.` }),
  cursor: z
    .string({ error: CURSOR_RULE })
    .refine((cursor) => placeOf(cursor) !== null, { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'To go on where the page before ended.' }),
  limit: limitSchema.optional(),
});

export const pageSchema = z
  .object({
    sessions: z.array(sessionSchema),
    unreadable: z.array(z.object({ id: z.string(), why: z.string() })).optional(),
    cursor: z.string().optional().meta({
      description: 'Absent on the last page. A page may be short, and yet not the last.',
    }),
  })
  .meta({ id: 'SessionPage' });

const newSession = z
  .strictObject({
    url: z.string().superRefine((url, context) => complain(context, urlRule(url))),
    id: idSchema.optional().meta({ description: 'Default: a random one.' }),
    every: z
      .union([z.number(), z.string()], { error: 'it is milliseconds, or text such as 30s' })
      .superRefine((every, context) => complain(context, ruleFor({ every })))
      .optional()
      .meta({ description: 'How often: milliseconds, or text such as 30s or 5m.' }),
    isPaused: z.boolean().optional(),
  })
  .meta({ id: 'NewPollSession' });

const onlyPolled = 'Only a session that is polled; what an intent started, stream.stop stops.';

export function sessionRoutes(parts: ServerParts): Route[] {
  return [listRoute(parts), getRoute(parts), addRoute(parts), ...changeRoutes(parts)];
}

function listRoute({ holdfast, intents }: ServerParts): Route {
  return route({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    tenants: 'yes',
    group: 'sessions',
    summary: 'List sessions',
    description:
      'First those that came from intents, the latest made first; then those that are polled, in order of id.',
    query: listQuery,
    answers: { 200: { description: 'One page.', body: pageSchema } },
    problems: [],
    async handle({ query, caller }) {
      const { kind, state: states, cursor, limit: most = DEFAULT_PAGE } = query;
      const place = cursor === undefined ? null : placeOf(cursor);
      const page = await sessionPage(
        { intents, sessions: holdfast.targets },
        {
          tenant: tenantOf(caller),
          seesPolled: seesPolled(caller),
          kind,
          states,
          most,
          ...(place !== null && { cursor: place }),
        },
      );
      return { body: page };
    },
  });
}

function getRoute({ holdfast, intents }: ServerParts): Route {
  return route({
    method: 'GET',
    path: `${PATH}/{id}`,
    access: 'v3:read',
    tenants: 'yes',
    group: 'sessions',
    summary: 'Look at a session',
    description: 'Of either sort. What belongs to another tenant is not found.',
    params: idParams,
    answers: { 200: { description: 'The session.', body: sessionSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id }, caller }) {
      const started = await intents.session(id, tenantOf(caller));
      if (started !== null) return { body: intentSessionJson(started) };
      const polled = seesPolled(caller) ? await holdfast.targets.get(id) : null;
      if (polled === null) throw new SessionNotFoundError({ session: id });
      return { body: pollSessionJson(polled) };
    },
  });
}

function addRoute({ holdfast }: ServerParts): Route {
  return route({
    method: 'POST',
    path: PATH,
    access: 'v3:write',
    tenants: 'no',
    group: 'sessions',
    summary: 'Have something polled',
    description:
      'Whether the address may be asked is known only once it is: then it is resolved and checked.',
    body: newSession,
    answers: {
      201: { description: 'It is added. Location leads to it.', body: pollSessionSchema },
    },
    problems: ['session-exists'],
    async handle({ body: { url, id, every, isPaused }, base }) {
      const session = await holdfast.targets.add({
        url,
        ...(id !== undefined && { id }),
        ...(every !== undefined && { every }),
        ...(isPaused !== undefined && { isPaused }),
      });
      const headers = { Location: `${base}${PATH}/${session.id}` };
      const act = { action: 'session.add', subject: session.id };
      return { status: 201, body: pollSessionJson(session), headers, act };
    },
  });
}

function changeRoutes({ holdfast, intents }: ServerParts): Route[] {
  const { targets: sessions } = holdfast;
  const common = { access: 'v3:write', tenants: 'no', group: 'sessions' } as const;
  const about = { ...common, params: idParams, description: onlyPolled } as const;
  const problems = ['not-found', 'session-of-intent', 'conflict'] as const;
  const ofPolled = async <T>(id: string, caller: Caller, change: Promise<T>): Promise<T> => {
    try {
      return await change;
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
      if ((await intents.session(id, tenantOf(caller))) !== null) throw ofIntent();
      throw error;
    }
  };
  const changed = { 200: { description: 'As it is now.', body: pollSessionSchema } };
  return [
    route({
      ...about,
      method: 'POST',
      path: `${PATH}/{id}/pause`,
      summary: 'Pause polling',
      answers: changed,
      problems,
      async handle({ params: { id }, caller }) {
        const { target: session, changed } = await ofPolled(id, caller, sessions.pause(id));
        const act = { action: 'session.pause', subject: id };
        return { body: pollSessionJson(session), ...(changed && { act }) };
      },
    }),
    route({
      ...about,
      method: 'POST',
      path: `${PATH}/{id}/resume`,
      summary: 'Resume polling',
      answers: changed,
      problems,
      async handle({ params: { id }, caller }) {
        const { target: session, changed } = await ofPolled(id, caller, sessions.resume(id));
        const act = { action: 'session.resume', subject: id };
        return { body: pollSessionJson(session), ...(changed && { act }) };
      },
    }),
    route({
      ...about,
      method: 'DELETE',
      path: `${PATH}/{id}`,
      summary: 'Delete a session',
      answers: { 204: { description: 'It is gone.' } },
      problems,
      async handle({ params: { id }, caller }) {
        await ofPolled(id, caller, sessions.remove(id));
        return { status: 204, act: { action: 'session.remove', subject: id } };
      },
    }),
  ];
}

function seesPolled({ tenant }: Caller): boolean {
  return tenant === null;
}

function ofIntent(): Problem {
  return new Problem('session-of-intent', {
    detail:
      'An intent has started this session. Send an intent of type stream.stop with its id as sessionId.',
  });
}

function complain(context: z.RefinementCtx, rule: string | null): void {
  if (rule !== null) context.addIssue({ code: 'custom', message: rule });
}

function urlRule(url: string): string | null {
  return ruleFor({ url }) ?? urlProblem(url);
}

/** What the session's own reader says of these fields. */
function ruleFor(fields: Readonly<Record<string, unknown>>): string | null {
  const session = readTargetRecord(SOME_ID, fields, 0);
  return session instanceof InvalidRecord ? session.rule : null;
}
