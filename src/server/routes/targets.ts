/** Targets: list, get, add, change, pause, resume, remove, move and revoke them. */
import { z } from 'zod';
import { isName } from '../../core/ids.ts';
import type { TargetView } from '../../fleet/watch/fleet.ts';
import { jsonFacts, withoutCredentials } from '../../telemetry/facts.ts';
import { Problem } from '../http/problem.ts';
import { type Route, routeGroup } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { expiryJson } from './json/fleet-json.ts';
import { targetSchema } from './json/fleet-schemas.ts';
import {
  CURSOR_RULE,
  DEFAULT_PAGE,
  idParams,
  limitSchema,
  reasonSchema,
  targetRecordSchema,
  unreadableSchema,
} from './json/schemas.ts';
import { targetRecordJson } from './json/session-json.ts';
import { parseCursor, targetPage } from './json/session-pages.ts';
import { definedFields, newTargetSchema, targetChangeSchema } from './json/target-input.ts';
import { revocationSchema, revokeBody } from './leases.ts';

const targetRoute = routeGroup({ group: 'targets', tenants: 'no' });
const PATH = '/api/v3/targets';
const INSTANCE_RULE = 'must be the id of an instance';
const CHANGED = { 200: { description: 'The target after the change.', body: targetRecordSchema } };

const listQuery = z.strictObject({
  cursor: z
    .string({ error: CURSOR_RULE })
    .refine((cursor) => parseCursor(cursor)?.part === 'targets', { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'Continues after the previous page.' }),
  limit: limitSchema.optional(),
});

const targetPageSchema = z
  .object({
    targets: z.array(targetRecordSchema),
    unreadable: unreadableSchema.optional().meta({
      description: 'Records of other programs that are not valid targets; on the first page.',
    }),
    cursor: z.string().optional().meta({ description: 'Absent on the last page.' }),
  })
  .meta({ id: 'TargetPage' });

const transferBody = z
  .strictObject({
    to: z
      .string()
      .refine(isName, { error: INSTANCE_RULE })
      .meta({ description: 'The id of an instance.' }),
    reason: reasonSchema.optional(),
  })
  .meta({ id: 'Transfer' });

export const transferSchema = z
  .object({
    target: z.string(),
    from: z.string().nullable().meta({ description: 'Its present owner; null for none.' }),
    to: z.string(),
  })
  .meta({ id: 'TransferOrder' });

const unpinSchema = z
  .object({
    target: z.string(),
    changed: z.boolean().meta({ description: 'False: it was not pinned.' }),
  })
  .meta({ id: 'Unpinned' });

export function targetRoutes(server: ServerContext): Route[] {
  return [
    listRoute(server),
    getRoute(server),
    addRoute(server),
    changeRoute(server),
    pauseRoute(server, 'pause'),
    pauseRoute(server, 'resume'),
    removeRoute(server),
    transferRoute(server),
    unpinRoute(server),
    revokeRoute(server),
  ];
}

function listRoute({ holdfast }: ServerContext): Route {
  return targetRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'List targets',
    description: 'What the fleet polls, in order of id. For owners, use `/api/v3/fleet`.',
    query: listQuery,
    responses: { 200: { description: 'One page.', body: targetPageSchema } },
    problems: [],
    async handle({ query: { cursor = '', limit = DEFAULT_PAGE } }) {
      const after = parseCursor(cursor)?.after ?? '';
      const page = await targetPage(holdfast.targets, after, limit);
      return { body: { ...page, targets: page.targets.map(targetRecordJson) } };
    },
  });
}

function getRoute({ holdfast: { fleet } }: ServerContext): Route {
  return targetRoute({
    method: 'GET',
    path: `${PATH}/{id}`,
    access: 'v3:read',
    summary: 'Get a target',
    description: 'Its owner, why that instance owns it, and the results of its last polls.',
    params: idParams,
    responses: { 200: { description: 'The target.', body: targetSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id } }) {
      const target = await fleet.target(id);
      if (target === null) throw targetNotFound();
      return { body: targetJson(target) };
    },
  });
}

function addRoute({ holdfast }: ServerContext): Route {
  return targetRoute({
    method: 'POST',
    path: PATH,
    access: 'v3:write',
    summary: 'Add a target',
    description:
      'One instance of the fleet polls it from then on, or runs its command. The address is resolved and checked when it is polled.',
    body: newTargetSchema,
    responses: {
      201: { description: 'Added. `Location` is its address.', body: targetRecordSchema },
    },
    problems: ['session-exists'],
    async handle({ body, base }) {
      if (body.command !== undefined) await holdfast.fleet.checkCommand(body.command);
      const target = await holdfast.targets.add(definedFields(body));
      const headers = { Location: `${base}${PATH}/${target.id}` };
      const audit = { action: 'target.add', subject: target.id };
      return { status: 201, body: targetRecordJson(target), headers, audit };
    },
  });
}

function changeRoute({ holdfast }: ServerContext): Route {
  return targetRoute({
    method: 'PATCH',
    path: `${PATH}/{id}`,
    access: 'v3:write',
    summary: 'Change a target',
    description:
      'Changes the URL, the polling interval, the time limit of a poll, the command and its data, or whether it is paused. `null` removes a field.',
    params: idParams,
    body: targetChangeSchema,
    responses: CHANGED,
    problems: ['not-found', 'conflict'],
    async handle({ params: { id }, body }) {
      if (typeof body.command === 'string') await holdfast.fleet.checkCommand(body.command);
      const { target, changed } = await holdfast.targets.update(id, definedFields(body));
      const audit = changed ? { action: 'target.change', subject: id } : undefined;
      return { body: targetRecordJson(target), audit };
    },
  });
}

function pauseRoute({ holdfast }: ServerContext, action: 'pause' | 'resume'): Route {
  return targetRoute({
    method: 'POST',
    path: `${PATH}/{id}/${action}`,
    access: 'v3:write',
    summary: action === 'pause' ? 'Pause a target' : 'Resume a target',
    description:
      action === 'pause'
        ? 'No instance polls it until it is resumed.'
        : 'One instance of the fleet polls it again.',
    params: idParams,
    responses: CHANGED,
    problems: ['not-found', 'conflict'],
    async handle({ params: { id } }) {
      const { target, changed } = await holdfast.targets[action](id);
      const audit = changed ? { action: `target.${action}`, subject: id } : undefined;
      return { body: targetRecordJson(target), audit };
    },
  });
}

function removeRoute({ holdfast }: ServerContext): Route {
  return targetRoute({
    method: 'DELETE',
    path: `${PATH}/{id}`,
    access: 'v3:write',
    summary: 'Remove a target',
    description: 'Its owner stops polling it, and its last result is removed.',
    params: idParams,
    responses: { 204: { description: 'It is removed.' } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id } }) {
      await holdfast.targets.remove(id);
      return { status: 204, audit: { action: 'target.remove', subject: id } };
    },
  });
}

function transferRoute({ holdfast }: ServerContext): Route {
  return targetRoute({
    method: 'POST',
    path: `${PATH}/{id}/transfer`,
    access: 'v3:admin',
    summary: 'Move a target to another instance',
    params: idParams,
    description:
      'Its owner hands it over when its current poll has ended; get the target to see when. It stays there while that instance takes part, or until `unpin`. The fleet balances the other targets around it.',
    body: transferBody,
    responses: { 202: { description: 'The order was written.', body: transferSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id }, body: { to, reason } }) {
      const order = await holdfast.fleet.transfer(id, to, reason === undefined ? {} : { reason });
      const audit = { action: 'target.transfer', subject: id, to: order.to, reason };
      return { status: 202, body: { target: id, ...order }, audit };
    },
  });
}

function unpinRoute({ holdfast }: ServerContext): Route {
  return targetRoute({
    method: 'POST',
    path: `${PATH}/{id}/unpin`,
    access: 'v3:admin',
    summary: 'Unpin a target',
    params: idParams,
    description:
      'The plan places it again, and leaves it where it is unless the balance needs it elsewhere.',
    responses: { 200: { description: 'It is not pinned.', body: unpinSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id } }) {
      const { changed } = await holdfast.fleet.unpin(id);
      const audit = changed ? { action: 'target.unpin', subject: id } : undefined;
      return { body: { target: id, changed }, audit };
    },
  });
}

function revokeRoute({ holdfast }: ServerContext): Route {
  return targetRoute({
    method: 'POST',
    path: `${PATH}/{id}/revoke`,
    access: 'v3:admin',
    summary: 'Revoke a target from its owner',
    params: idParams,
    body: revokeBody,
    description:
      'For an owner that does not respond: its next renewal fails. The target stays blocked until the old owner can no longer act, unless `force` is set; fences tell the two owners apart. The same instance may get it again: to move it, use `transfer`.',
    responses: {
      200: { description: 'The owner that it was revoked from, if any.', body: revocationSchema },
    },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id }, body: { reason, force = false, fence } }) {
      const result = await holdfast.revoke(id, { reason, force, fence, class: 'poll' });
      // A poller may have targets that are not in the store: such a target exists while it is held.
      if (!result.revoked && (await holdfast.targets.get(id))?.kind !== 'poll')
        throw targetNotFound();
      const audit = result.revoked ? { action: 'target.revoke', subject: id, reason } : undefined;
      return { body: { key: id, ...jsonFacts({ ...result }) }, audit };
    },
  });
}

function targetNotFound(): Problem {
  return new Problem('not-found', { detail: 'There is no target with this id.' });
}

function targetJson({ url, fence, expiresInMs, lastResult, ...target }: TargetView): object {
  return {
    ...target,
    expiresInMs: expiryJson(expiresInMs),
    isPaused: target.reason === 'paused',
    url: url === null ? null : withoutCredentials(url),
    fence: String(fence),
    lastResult: lastResult === null ? null : resultJson(lastResult),
  };
}

function resultJson(result: NonNullable<TargetView['lastResult']>): object {
  const { at, by, ok, tookMs, error, value, state, failures, nextAt } = result;
  const shownError = error === undefined ? undefined : withoutCredentials(error);
  return { at, by, ok, tookMs, error: shownError, value, state, failures, nextAt };
}
