/** Workflows to look at, with what has happened to them; and the way to end a tenure against its orchestrator's will. */
import { z } from 'zod';
import { isTargetId } from '../../core/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import type { HistoryEntry } from '../../store/port/workflow-store.ts';
import { LeaseNotFoundError } from '../../workflow/errors.ts';
import type { WorkflowView } from '../../workflow/workflows.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import { expiryJson } from './json/fleet-json.ts';
import { CURSOR_RULE, DEFAULT_PAGE, idParams, limitSchema, reasonSchema } from './json/schemas.ts';

const PATH = '/api/v3/workflows';

const workflowFields = {
  id: z.string(),
  state: z.unknown(),
  epoch: z.number().int(),
  leaseId: z.string().nullable().meta({ description: 'Of its tenure; null after a revocation.' }),
  isHeld: z.boolean().meta({ description: 'Somebody holds it just now.' }),
  expiresInMs: z.number().int().nullable(),
  unresolved: z.number().int().meta({ description: 'Actions whose results are not in.' }),
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
        description: 'What has happened to it, the latest first: the last thousand things.',
      }),
  })
  .meta({ id: 'WorkflowDetail' });

const tenureRevocationSchema = z
  .object({
    workflow: z.string(),
    revoked: z.boolean().meta({ description: 'False: it was in nobody’s tenure.' }),
    leaseId: z.string().nullable().meta({ description: 'Of the tenure that was ended.' }),
  })
  .meta({ id: 'TenureRevocation' });

const listQuery = z.strictObject({
  cursor: z
    .string({ error: CURSOR_RULE })
    .transform((cursor) => Buffer.from(cursor, 'base64url').toString())
    .refine(isTargetId, { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'To go on where the page before ended.' }),
  limit: limitSchema.optional(),
});

const revokeBody = z.strictObject({ reason: reasonSchema }).meta({ id: 'RevokeTenure' });

export interface WorkflowParts {
  readonly holdfast: Pick<Holdfast, 'workflows'>;
}

export function workflowRoutes(parts: WorkflowParts): Route[] {
  return [listRoute(parts), getRoute(parts), revokeRoute(parts)];
}

function listRoute({ holdfast: { workflows } }: WorkflowParts): Route {
  return route({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    tenants: 'no',
    group: 'workflows',
    summary: 'List workflows',
    description: 'In order of id, a page at a time.',
    query: listQuery,
    answers: { 200: { description: 'One page.', body: workflowsSchema } },
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

function getRoute({ holdfast: { workflows } }: WorkflowParts): Route {
  return route({
    method: 'GET',
    path: `${PATH}/{id}`,
    access: 'v3:read',
    tenants: 'no',
    group: 'workflows',
    summary: 'Look at a workflow',
    params: idParams,
    description: 'How it is, and what has happened to it.',
    answers: { 200: { description: 'The workflow.', body: workflowSchema } },
    problems: ['not-found'],
    async handle({ params: { id } }) {
      const view = await workflows.get(id);
      if (view === null) throw noWorkflow();
      const steps: HistoryEntry[] = [];
      for await (const entry of workflows.history(id)) steps.push(entry);
      return { body: { ...workflowJson(view), steps: steps.reverse().map(stepJson) } };
    },
  });
}

function revokeRoute({ holdfast: { workflows } }: WorkflowParts): Route {
  return route({
    method: 'POST',
    path: `${PATH}/{id}/revoke`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'workflows',
    summary: 'End a tenure',
    params: idParams,
    body: revokeBody,
    description:
      'From now on everything its orchestrator sends is refused, whoever and wherever it is.',
    answers: { 200: { description: 'What was ended.', body: tenureRevocationSchema } },
    problems: ['not-found'],
    async handle({ params: { id }, body: { reason } }) {
      const view = await workflows.get(id);
      if (view === null) throw noWorkflow();
      const { leaseId } = view;
      const revoked = leaseId !== null && (await isEnded(workflows, leaseId, reason));
      const body = { workflow: id, revoked, leaseId: revoked ? leaseId : null };
      return { body, ...(revoked && { act: { action: 'workflow.revoke', subject: id, reason } }) };
    },
  });
}

/** False where somebody else has ended it meanwhile. */
async function isEnded(
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

function noWorkflow(): Problem {
  return new Problem('not-found', { detail: 'There is no workflow with this id.' });
}
