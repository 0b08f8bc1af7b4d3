/** What operators do with a target: give it to another member, leave it to the plan again, take it away from its holder. */
import { z } from 'zod';
import { isName } from '../../core/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import { jsonFacts } from '../../telemetry/facts.ts';
import { type Route, route } from '../http/route.ts';
import { idParams, reasonSchema } from './json/schemas.ts';
import { revocationOf, revocationSchema, revokeBody } from './leases.ts';
import { noTarget } from './picture.ts';

const PATH = '/api/v3/targets/{id}';

const MEMBER_RULE = 'it is the id of an instance';

const transferBody = z
  .strictObject({
    to: z.string().refine(isName, { error: MEMBER_RULE }).meta({ description: MEMBER_RULE }),
    reason: reasonSchema.optional(),
  })
  .meta({ id: 'Transfer' });

export const transferSchema = z
  .object({
    target: z.string(),
    from: z.string().nullable().meta({ description: 'Who has it now; null: nobody.' }),
    to: z.string(),
  })
  .meta({ id: 'TransferOrder' });

const unpinSchema = z
  .object({
    target: z.string(),
    changed: z.boolean().meta({ description: 'False: it was not pinned.' }),
  })
  .meta({ id: 'Unpinned' });

export interface TargetParts {
  readonly holdfast: Pick<Holdfast, 'fleet' | 'targets' | 'revoke'>;
}

export function targetRoutes(parts: TargetParts): Route[] {
  return [transferRoute(parts), unpinRoute(parts), revokeRoute(parts)];
}

function transferRoute({ holdfast }: TargetParts): Route {
  return route({
    method: 'POST',
    path: `${PATH}/transfer`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'fleet',
    summary: 'Move a target to another instance',
    params: idParams,
    description:
      'Its holder hands it over as soon as what it does has settled; the target shows when it has. It stays there while that instance takes part, or until `unpin`; the balance is kept with others.',
    body: transferBody,
    answers: { 202: { description: 'It has been ordered.', body: transferSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id }, body: { to, reason } }) {
      const order = await holdfast.fleet.transfer(id, to, reason === undefined ? {} : { reason });
      const act = { action: 'target.transfer', subject: id, to: order.to, reason };
      return { status: 202, body: { target: id, ...order }, act };
    },
  });
}

function unpinRoute({ holdfast }: TargetParts): Route {
  return route({
    method: 'POST',
    path: `${PATH}/unpin`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'fleet',
    summary: 'Leave a target to the plan again',
    params: idParams,
    description: 'The plan alone says where it is, which leaves it where it is while that is even.',
    answers: { 200: { description: 'It is so now.', body: unpinSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id } }) {
      const { changed } = await holdfast.fleet.unpin(id);
      const act = { action: 'target.unpin', subject: id };
      return { body: { target: id, changed }, ...(changed && { act }) };
    },
  });
}

function revokeRoute({ holdfast }: TargetParts): Route {
  return route({
    method: 'POST',
    path: `${PATH}/revoke`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'fleet',
    summary: 'Take a target away from its holder',
    params: idParams,
    body: revokeBody,
    description:
      'For a holder that can not be asked: its next renewal tells it. Nobody is granted the target while it may still act, unless `force` says so; fences tell the two apart. It may come back to the same instance: to move it, use `transfer`.',
    answers: {
      200: { description: 'Whom it was taken from, if anybody.', body: revocationSchema },
    },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id }, body }) {
      const { reason } = body;
      const result = await holdfast.revoke(id, { ...revocationOf(body), class: 'poll' });
      // Pollers may be given targets that are no sessions: one that somebody held was one.
      if (!result.revoked && (await holdfast.targets.get(id))?.kind !== 'poll') throw noTarget();
      const act = { action: 'target.revoke', subject: id, reason };
      return { body: { key: id, ...jsonFacts({ ...result }) }, ...(result.revoked && { act }) };
    },
  });
}
