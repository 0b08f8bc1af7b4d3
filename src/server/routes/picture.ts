/** The fleet to look at: all of it once, all of it as it changes, or one target of it. */
import type { Fleet, TargetView } from '../../fleet/watch/fleet.ts';
import { withoutCredentials } from '../../telemetry/facts.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import type { FleetHub } from '../streams/fleet-hub.ts';
import { STREAM_HEADERS } from './events.ts';
import { expiryJson, pictureJson } from './json/fleet-json.ts';
import { pictureSchema, targetSchema } from './json/fleet-schemas.ts';
import { idParams } from './json/schemas.ts';

const PATH = '/api/v3/fleet';

export interface PictureParts {
  readonly fleet: Pick<Fleet, 'picture' | 'target'>;
  readonly hub: FleetHub;
}

export function pictureRoutes(parts: PictureParts): Route[] {
  return [pictureRoute(parts), liveRoute(parts), targetRoute(parts)];
}

function pictureRoute({ fleet }: PictureParts): Route {
  return route({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    tenants: 'no',
    group: 'fleet',
    summary: 'Who owns what',
    description:
      'Every instance and every target, at one moment. Looking again and again is what `/api/v3/fleet/live` is for.',
    answers: { 200: { description: 'The fleet.', body: pictureSchema } },
    problems: [],
    async handle() {
      return { body: pictureJson(await fleet.picture()) };
    },
  });
}

function liveRoute({ hub }: PictureParts): Route {
  return route({
    method: 'GET',
    path: `${PATH}/live`,
    access: 'v3:read',
    tenants: 'no',
    group: 'fleet',
    summary: 'Watch who owns what',
    description:
      'Server-sent events: first a `picture`, as `/api/v3/fleet` has it, then a `change` whenever something is otherwise, and at least every two seconds. ' +
      'A change has what is new: `members` if any of them is, `targets` as rows that replace those with the same id, and `removed`. ' +
      '`stalled` says that the store does not answer, `resumed` that it does again; `bye` says why the server ends it, as in `/api/v3/events`. Who comes back gets a new picture.',
    answers: {
      200: { description: 'A stream that does not end by itself.', mediaType: 'text/event-stream' },
    },
    problems: ['not-ready'],
    async handle({ caller, signal }) {
      return new Response(await hub.watch(caller, signal), { headers: STREAM_HEADERS });
    },
  });
}

function targetRoute({ fleet }: PictureParts): Route {
  return route({
    method: 'GET',
    path: '/api/v3/targets/{id}',
    access: 'v3:read',
    tenants: 'no',
    group: 'fleet',
    summary: 'Look at a target',
    params: idParams,
    description: 'Who owns it and why, and what its last polls gave.',
    answers: { 200: { description: 'The target.', body: targetSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id } }) {
      const target = await fleet.target(id);
      if (target === null) throw noTarget();
      return { body: targetJson(target) };
    },
  });
}

export function noTarget(): Problem {
  return new Problem('not-found', { detail: 'Nothing is polled under this id.' });
}

function targetJson({ url, fence, expiresInMs, lastResult, ...target }: TargetView): object {
  return {
    ...target,
    expiresInMs: expiryJson(expiresInMs),
    url: url === null ? null : withoutCredentials(url),
    fence: String(fence),
    lastResult: lastResult === null ? null : resultJson(lastResult),
  };
}

function resultJson(result: NonNullable<TargetView['lastResult']>): object {
  const { at, by, ok, tookMs, error, value } = result;
  return {
    at,
    by,
    ok,
    tookMs,
    ...(error !== undefined && { error: withoutCredentials(error) }),
    ...(value !== undefined && { value }),
  };
}
