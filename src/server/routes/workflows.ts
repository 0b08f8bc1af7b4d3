/** Workflows: list them, get one with its history, revoke its lease. */
import { z } from 'zod';
import { isTargetId } from '../../core/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import type { HistoryEntry } from '../../store/port/workflow-store.ts';
import { LeaseNotFoundError } from '../../workflow/errors.ts';
import type { WorkflowView } from '../../workflow/workflows.ts';
import { Problem } from '../http/problem.ts';
import { type Route, routeGroup } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { expiryJson } from './json/fleet-json.ts';
import { CURSOR_RULE, DEFAULT_PAGE, idParams, limitSchema, reasonSchema } from './json/schemas.ts';

const workflowRoute = routeGroup({ group: 'workflows', tenants: 'no' });
const PATH = '/api/v3/workflows';

const workflowFields = {
  id: z.string(),
  state: z.unknown(),
  epoch: z.number().int(),
  leaseId: z
    .string()
    .nullable()
    .meta({ description: 'The lease of its orchestrator; null after a revocation.' }),
  isHeld: z.boolean().meta({ description: 'An orchestrator holds it now.' }),
  expiresInMs: z.number().int().nullable(),
  unresolved: z.number().int().meta({ description: 'Actions without a result yet.' }),
};

export const workflowsSchema = z
  .object({
    workflows: z.array(z.object(workflowFields).meta({ id: 'Workflow' })),
    cursor: z.string().optional().meta({ description: 'Absent on the last page.' }),
  })
  .meta({ id: 'WorkflowsPage' });

export const workflowSchema = z
  .object({
    ...workflowFields,
    steps: z
      .array(
        z.object({
          position: z.string(),
          at: z.number().int().meta({ description: 'Milliseconds since 1970.' }),
          epoch: z.number().int(),
          leaseId: z.string().nullable(),
          kind: z.string(),
          facts: z.record(z.string(), z.unknown()),
        }),
      )
      .meta({
        description: 'Its last thousand steps, the latest first.',
      }),
  })
  .meta({ id: 'WorkflowDetail' });

const tenureRevocationSchema = z
  .object({
    workflow: z.string(),
    revoked: z.boolean().meta({ description: 'False: no orchestrator had it.' }),
    leaseId: z.string().nullable().meta({ description: 'The lease that was revoked.' }),
  })
  .meta({ id: 'TenureRevocation' });

const listQuery = z.strictObject({
  cursor: z
    .string({ error: CURSOR_RULE })
    .transform((cursor) => Buffer.from(cursor, 'base64url').toString())
    .refine(isTargetId, { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'Continues after the previous page.' }),
  limit: limitSchema.optional(),
});

const revokeBody = z.strictObject({ reason: reasonSchema }).meta({ id: 'RevokeTenure' });

export function workflowRoutes(server: ServerContext): Route[] {
  return [listRoute(server), getRoute(server), revokeRoute(server)];
}

function listRoute({ holdfast: { workflows } }: ServerContext): Route {
  return workflowRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'List workflows',
    description: 'In order of id, a page at a time.',
    query: listQuery,
    responses: { 200: { description: 'One page.', body: workflowsSchema } },
    problems: [],
    async handle({ query: { cursor, limit = DEFAULT_PAGE } }) {
      const views: WorkflowView[] = [];
      for await (const view of workflows.list(cursor === undefined ? {} : { after: cursor })) {
        if (views.length === limit) {
          const last = views.at(-1)?.id ?? '';
          const next = Buffer.from(last).toString('base64url');
          return { body: { workflows: views.map(workflowJson), cursor: next } };
        }
        views.push(view);
      }
      return { body: { workflows: views.map(workflowJson) } };
    },
  });
}

function getRoute({ holdfast: { workflows } }: ServerContext): Route {
  return workflowRoute({
    method: 'GET',
    path: `${PATH}/{id}`,
    access: 'v3:read',
    summary: 'Get a workflow',
    params: idParams,
    description: 'Its state and its history.',
    responses: { 200: { description: 'The workflow.', body: workflowSchema } },
    problems: ['not-found'],
    async handle({ params: { id } }) {
      const view = await workflows.get(id);
      if (view === null) throw workflowNotFound();
      const steps: HistoryEntry[] = [];
      for await (const entry of workflows.history(id)) steps.push(entry);
      return { body: { ...workflowJson(view), steps: steps.reverse().map(stepJson) } };
    },
  });
}

function revokeRoute({ holdfast: { workflows } }: ServerContext): Route {
  return workflowRoute({
    method: 'POST',
    path: `${PATH}/{id}/revoke`,
    access: 'v3:admin',
    summary: 'Revoke a workflow’s lease',
    params: idParams,
    body: revokeBody,
    description:
      'From now on the store refuses every step of its orchestrator, wherever that runs.',
    responses: {
      200: { description: 'The lease that was revoked, if any.', body: tenureRevocationSchema },
    },
    problems: ['not-found'],
    async handle({ params: { id }, body: { reason } }) {
      const view = await workflows.get(id);
      if (view === null) throw workflowNotFound();
      const { leaseId } = view;
      const revoked = leaseId !== null && (await revokeLease(workflows, leaseId, reason));
      const body = { workflow: id, revoked, leaseId: revoked ? leaseId : null };
      const audit = revoked ? { action: 'workflow.revoke', subject: id, reason } : undefined;
      return { body, audit };
    },
  });
}

/** False where the lease had ended meanwhile. */
async function revokeLease(
  workflows: Holdfast['workflows'],
  leaseId: string,
  reason: string,
): Promise<boolean> {
  try {
    await workflows.revokeLease(leaseId, reason);
    return true;
  } catch (error) {
    if (error instanceof LeaseNotFoundError) return false;
    throw error;
  }
}

function workflowJson(view: WorkflowView): Omit<z.output<typeof workflowSchema>, 'steps'> {
  const { id, state, epoch, leaseId, isHeld, expiresInMs, unresolved } = view;
  return {
    id,
    state,
    epoch,
    leaseId,
    isHeld,
    unresolved,
    expiresInMs: isHeld ? expiryJson(expiresInMs) : null,
  };
}

function stepJson({ position, atMs, epoch, leaseId, what }: HistoryEntry): object {
  const { kind, ...facts } = what;
  return { position, at: Math.round(atMs), epoch, leaseId, kind, facts };
}

function workflowNotFound(): Problem {
  return new Problem('not-found', { detail: 'There is no workflow with this id.' });
}
