/** The whole fleet: once, or as a stream of changes. */
import { type Route, routeGroup } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { STREAM_HEADERS } from './events.ts';
import { pictureJson } from './json/fleet-json.ts';
import { pictureSchema } from './json/fleet-schemas.ts';

const fleetRoute = routeGroup({ group: 'fleet', tenants: 'no' });
const PATH = '/api/v3/fleet';

export function fleetRoutes(server: ServerContext): Route[] {
  return [pictureRoute(server), liveRoute(server)];
}

function pictureRoute({ holdfast }: ServerContext): Route {
  return fleetRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'Get the fleet',
    description:
      'Every instance and every target at one moment. To follow changes, use `/api/v3/fleet/live`.',
    responses: { 200: { description: 'The fleet.', body: pictureSchema } },
    problems: [],
    async handle() {
      return { body: pictureJson(await holdfast.fleet.picture()) };
    },
  });
}

function liveRoute({ fleetStream }: ServerContext): Route {
  return fleetRoute({
    method: 'GET',
    path: `${PATH}/live`,
    access: 'v3:read',
    summary: 'Watch the fleet',
    description:
      'Server-sent events: first a `picture`, in the form of `/api/v3/fleet`, then a `change` whenever something changes, and at least every two seconds. ' +
      'A change has `members` if one of them changed, `targets` as rows that replace those with the same id, and `removed`. ' +
      '`stalled` means that the store does not answer, `resumed` that it answers again. `bye` says why the server ends the stream, as in `/api/v3/events`. A client that reconnects gets a new picture.',
    responses: {
      200: { description: 'A stream that stays open.', mediaType: 'text/event-stream' },
    },
    problems: ['not-ready'],
    async handle({ caller, signal }) {
      return new Response(await fleetStream.watch(caller, signal), { headers: STREAM_HEADERS });
    },
  });
}
