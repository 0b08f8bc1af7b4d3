/** The instances that share the targets: list them, drain one, undrain one. */
import { z } from 'zod';
import { isName } from '../../core/ids.ts';
import { type Route, routeGroup } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { memberJson } from './json/fleet-json.ts';
import { memberSchema } from './json/fleet-schemas.ts';

const memberRoute = routeGroup({ group: 'fleet', tenants: 'no' });
const PATH = '/api/v3/members';
const ID_RULE = 'must be the id of an instance';

const drainSchema = z
  .object({
    member: z.string(),
    draining: z.boolean(),
    changed: z.boolean().meta({ description: 'False: it was so already.' }),
  })
  .meta({ id: 'DrainOrder' });

const memberParams = z.strictObject({ id: z.string().refine(isName, { error: ID_RULE }) });

export function memberRoutes(server: ServerContext): Route[] {
  return [
    listRoute(server),
    drainRoute(server, 'drain', {
      summary: 'Drain an instance',
      description:
        'The instance hands over every target as soon as its current poll has ended, and takes no new ones until it is undrained or stops.',
    }),
    drainRoute(server, 'undrain', {
      summary: 'Undrain an instance',
      description: 'The instance gets its share of the targets back.',
    }),
  ];
}

function listRoute({ holdfast }: ServerContext): Route {
  return memberRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'List instances',
    description: 'The live instances, and how many targets each owns and should own.',
    responses: {
      200: {
        description: 'All instances, in order of id.',
        body: z.object({ members: z.array(memberSchema) }).meta({ id: 'Members' }),
      },
    },
    problems: [],
    async handle() {
      const { members } = await holdfast.fleet.view();
      return { body: { members: members.map(memberJson) } };
    },
  });
}

function drainRoute(
  { holdfast }: ServerContext,
  order: 'drain' | 'undrain',
  { summary, description }: { summary: string; description: string },
): Route {
  return memberRoute({
    method: 'POST',
    path: `${PATH}/{id}/${order}`,
    access: 'v3:admin',
    summary,
    description,
    params: memberParams,
    responses: { 200: { description: 'The order was written.', body: drainSchema } },
    problems: ['not-found'],
    async handle({ params: { id } }) {
      const { changed } = await holdfast.fleet[order](id);
      const body = { member: id, draining: order === 'drain', changed };
      return { body, audit: changed ? { action: `member.${order}`, subject: id } : undefined };
    },
  });
}
