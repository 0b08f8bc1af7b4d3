/**
 * Sessions that intents started: list and get them. A session is stopped by an intent.
 *
 * Targets are listed and changed here too, as sessions of kind `poll`. That is deprecated: their
 * routes are in `targets.ts`.
 */
import { z } from 'zod';
import { SessionNotFoundError } from '../../fleet/targets/errors.ts';
import { isRef, REF_RULE } from '../../intents/intent.ts';
import { isKindName, KIND_NAME_RULE } from '../../intents/kind.ts';
import { SESSION_STATES } from '../../store/port/intent-store.ts';
import { visibleTenant } from '../http/auth.ts';
import { Problem } from '../http/problem.ts';
import { type Caller, type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import {
  CURSOR_RULE,
  DEFAULT_PAGE,
  idParams,
  limitSchema,
  pollSessionSchema,
  sessionSchema,
  unreadableSchema,
} from './json/schemas.ts';
import { intentSessionJson, pollSessionJson } from './json/session-json.ts';
import { parseCursor, sessionPage } from './json/session-pages.ts';
import { definedFields, newTargetFields } from './json/target-input.ts';

const PATH = '/api/v3/sessions';
const STATE_RULE = `must be one or more of ${SESSION_STATES.join(', ')}, separated by commas`;

const listQuery = z.strictObject({
  kind: z
    .string({ error: KIND_NAME_RULE })
    .refine(isKindName, { error: KIND_NAME_RULE })
    .optional()
    .meta({
      description:
        'Only sessions of this kind: `live`, `vod` or a declared kind. `poll` is deprecated: use `/api/v3/targets`.',
    }),
  key: z
    .string({ error: REF_RULE })
    .refine(isRef, { error: REF_RULE })
    .optional()
    .meta({ description: 'Only sessions with this key, channel or recording; needs `kind`.' }),
  state: z
    .union([z.string(), z.array(z.string())], { error: STATE_RULE })
    .transform((texts) => [texts].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(z.enum(SESSION_STATES, { error: STATE_RULE })))
    .optional()
    .meta({
      description: `Only sessions in these states, separated by commas: ${SESSION_STATES.join(', ')}. Repeatable. Targets have no state.`,
    }),
  cursor: z
    .string({ error: CURSOR_RULE })
    .refine((cursor) => parseCursor(cursor) !== null, { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'Continues after the previous page.' }),
  limit: limitSchema.optional(),
});

export const pageSchema = z
  .object({
    sessions: z.array(sessionSchema),
    unreadable: unreadableSchema.optional(),
    cursor: z.string().optional().meta({
      description: 'Absent on the last page. A page that is not the last may be short.',
    }),
  })
  .meta({ id: 'SessionPage' });

const newSessionSchema = z.strictObject(newTargetFields).meta({ id: 'NewPollSession' });

export function sessionRoutes(server: ServerContext): Route[] {
  return [
    listRoute(server),
    getRoute(server),
    addRoute(server),
    pauseRoute(server, 'pause'),
    pauseRoute(server, 'resume'),
    removeRoute(server),
  ];
}

/** The headers of responses about targets, which have routes of their own. */
function deprecation(base: string, successor: string): Record<string, string> {
  return {
    Deprecation: 'true',
    Link: `<${base}/api/v3/targets${successor}>; rel="successor-version"`,
  };
}

function listRoute({ holdfast, intents }: ServerContext): Route {
  return route({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    tenants: 'yes',
    group: 'sessions',
    summary: 'List sessions',
    description:
      'Sessions that intents started, the latest first. Then targets, in order of id: that part is deprecated, use `/api/v3/targets`. A page that has or may have targets has the headers `Deprecation` and `Link`.',
    query: listQuery,
    responses: { 200: { description: 'One page.', body: pageSchema } },
    problems: [],
    async handle({ query, caller, base }) {
      const { kind, key, state: states, cursor, limit = DEFAULT_PAGE } = query;
      const { hasTargets, ...page } = await sessionPage(intents, holdfast.targets, {
        tenant: visibleTenant(caller),
        seesTargets: seesTargets(caller),
        kind,
        key,
        states,
        limit,
        cursor: cursor === undefined ? undefined : (parseCursor(cursor) ?? undefined),
      });
      return { body: page, headers: hasTargets ? deprecation(base, '') : undefined };
    },
  });
}

function getRoute({ holdfast, intents }: ServerContext): Route {
  return route({
    method: 'GET',
    path: `${PATH}/{id}`,
    access: 'v3:read',
    tenants: 'yes',
    group: 'sessions',
    summary: 'Get a session',
    description:
      'A session of another tenant is not found. Also returns targets, which is deprecated: use `/api/v3/targets/{id}`.',
    params: idParams,
    responses: { 200: { description: 'The session.', body: sessionSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id }, caller, base }) {
      const session = await intents.session(id, visibleTenant(caller));
      if (session !== null) return { body: intentSessionJson(session) };
      const target = seesTargets(caller) ? await holdfast.targets.get(id) : null;
      if (target === null) throw new SessionNotFoundError({ session: id });
      return { body: pollSessionJson(target), headers: deprecation(base, `/${id}`) };
    },
  });
}

function addRoute({ holdfast }: ServerContext): Route {
  return route({
    method: 'POST',
    path: PATH,
    access: 'v3:write',
    tenants: 'no',
    group: 'sessions',
    isDeprecated: true,
    summary: 'Add a target',
    description: 'Deprecated: use `POST /api/v3/targets`.',
    body: newSessionSchema,
    responses: {
      201: { description: 'Added. `Location` is its address.', body: pollSessionSchema },
    },
    problems: ['session-exists'],
    async handle({ body, base }) {
      const target = await holdfast.targets.add(definedFields(body));
      const headers = { ...deprecation(base, ''), Location: `${base}${PATH}/${target.id}` };
      const audit = { action: 'session.add', subject: target.id };
      return { status: 201, body: pollSessionJson(target), headers, audit };
    },
  });
}

function pauseRoute({ holdfast, intents }: ServerContext, action: 'pause' | 'resume'): Route {
  return route({
    method: 'POST',
    path: `${PATH}/{id}/${action}`,
    access: 'v3:write',
    tenants: 'no',
    group: 'sessions',
    isDeprecated: true,
    summary: action === 'pause' ? 'Pause a target' : 'Resume a target',
    description: `Deprecated: use \`POST /api/v3/targets/{id}/${action}\`. A session of an intent is stopped with \`stream.stop\`.`,
    params: idParams,
    responses: { 200: { description: 'The target after the change.', body: pollSessionSchema } },
    problems: ['not-found', 'session-of-intent', 'conflict'],
    async handle({ params: { id }, caller, base }) {
      const changing = holdfast.targets[action](id);
      const { target, changed } = await orSessionOfIntent(intents, id, caller, changing);
      const audit = changed ? { action: `session.${action}`, subject: id } : undefined;
      const headers = deprecation(base, `/${id}/${action}`);
      return { body: pollSessionJson(target), headers, audit };
    },
  });
}

function removeRoute({ holdfast, intents }: ServerContext): Route {
  return route({
    method: 'DELETE',
    path: `${PATH}/{id}`,
    access: 'v3:write',
    tenants: 'no',
    group: 'sessions',
    isDeprecated: true,
    summary: 'Remove a target',
    description:
      'Deprecated: use `DELETE /api/v3/targets/{id}`. A session of an intent is stopped with `stream.stop`.',
    params: idParams,
    responses: { 204: { description: 'It is removed.' } },
    problems: ['not-found', 'session-of-intent', 'conflict'],
    async handle({ params: { id }, caller, base }) {
      await orSessionOfIntent(intents, id, caller, holdfast.targets.remove(id));
      const audit = { action: 'session.remove', subject: id };
      return { status: 204, headers: deprecation(base, `/${id}`), audit };
    },
  });
}

/** Says so where the id is not that of a target but of a session that an intent started. */
async function orSessionOfIntent<T>(
  intents: ServerContext['intents'],
  id: string,
  caller: Caller,
  change: Promise<T>,
): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof SessionNotFoundError)) throw error;
    if ((await intents.session(id, visibleTenant(caller))) === null) throw error;
    throw new Problem('session-of-intent', {
      detail:
        'An intent started this session. To end it, send an intent of type stream.stop with its id as sessionId.',
    });
  }
}

/** Targets belong to no tenant. */
function seesTargets({ tenant }: Caller): boolean {
  return tenant === null;
}
