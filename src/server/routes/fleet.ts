/** The instances that share out what is polled: to look at, and to take one out of it for a while. */
import { z } from 'zod';
import { isName } from '../../core/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import { type Route, route } from '../http/route.ts';
import { memberJson } from './json/fleet-json.ts';
import { memberSchema } from './json/fleet-schemas.ts';

const PATH = '/api/v3/members';
const ID_RULE = 'it is the id of an instance';

const orderSchema = z
  .object({
    member: z.string(),
    draining: z.boolean(),
    changed: z.boolean().meta({ description: 'False: it had been told before.' }),
  })
  .meta({ id: 'DrainOrder' });

const memberParams = z.strictObject({ id: z.string().refine(isName, { error: ID_RULE }) });

export interface FleetParts {
  readonly holdfast: Pick<Holdfast, 'fleet'>;
}

export function fleetRoutes({ holdfast }: FleetParts): Route[] {
  return [
    route({
      method: 'GET',
      path: PATH,
      access: 'v3:read',
      tenants: 'no',
      group: 'fleet',
      summary: 'List instances',
      description: 'Who is alive, and how many targets each owns and should own.',
      answers: {
        200: {
          description: 'All of them, in order of id.',
          body: z.object({ members: z.array(memberSchema) }).meta({ id: 'Members' }),
        },
      },
      problems: [],
      async handle() {
        const { members } = await holdfast.fleet.view();
        return { body: { members: members.map(memberJson) } };
      },
    }),
    orderRoute({ holdfast }, 'drain', {
      summary: 'Drain an instance',
      description:
        'It hands over everything it owns as soon as what it does has settled, and takes nothing new, until it is told otherwise or stops.',
    }),
    orderRoute({ holdfast }, 'undrain', {
      summary: 'Let an instance take part again',
      description: 'It gets its share of the targets back.',
    }),
  ];
}

function orderRoute(
  { holdfast }: FleetParts,
  order: 'drain' | 'undrain',
  words: { summary: string; description: string },
): Route {
  return route({
    method: 'POST',
    path: `${PATH}/{id}/${order}`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'fleet',
    ...words,
    params: memberParams,
    answers: { 200: { description: 'It has been told.', body: orderSchema } },
    problems: ['not-found'],
    async handle({ params: { id } }) {
      const { changed } = await holdfast.fleet[order](id);
      const body = { member: id, draining: order === 'drain', changed };
      return { body, ...(changed && { act: { action: `member.${order}`, subject: id } }) };
    },
  });
}
