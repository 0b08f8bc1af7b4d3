/** Workflows: list them, get one with its history, signal and restart it, revoke its lease. */
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
import { RUN_PHASES, runDetailJson, runDetailSchema, runJson, runSchema } from './json/run-json.ts';
import {
  CURSOR_RULE,
  DEFAULT_PAGE,
  idParams,
  idSchema,
  limitSchema,
  reasonSchema,
} from './json/schemas.ts';

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
  instance: z.string().nullable().meta({
    description: 'The instance of its orchestrator: who holds it, or held it last.',
  }),
  createdAt: z.number().int().meta({ description: 'Milliseconds since 1970.' }),
  changedAt: z.number().int().meta({ description: 'Milliseconds since 1970.' }),
  unresolved: z.number().int().meta({ description: 'Actions without a result yet.' }),
};

const RUN_NOTE = 'Null for a workflow that no function runs.';

export const workflowsSchema = z
  .object({
    workflows: z.array(
      z
        .object({ ...workflowFields, run: runSchema.nullable().meta({ description: RUN_NOTE }) })
        .meta({ id: 'Workflow' }),
    ),
    cursor: z.string().optional().meta({
      description: 'Absent on the last page. A page that is not the last may be short.',
    }),
  })
  .meta({ id: 'WorkflowsPage' });

export const workflowSchema = z
  .object({
    ...workflowFields,
    run: runDetailSchema.nullable().meta({ description: RUN_NOTE }),
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

const signalledSchema = z
  .object({ workflow: z.string(), signal: z.string(), kept: z.literal(true) })
  .meta({ id: 'SignalledWorkflow' });

const restartedSchema = z
  .object({ workflow: z.string(), restarted: z.literal(true) })
  .meta({ id: 'RestartedWorkflow' });

const PHASE_RULE = `must be one or more of ${RUN_PHASES.join(', ')}, separated by commas`;
/** One request looks at no more workflows than this; the next one continues. */
const MAX_SEARCHED = 5_000;

const listQuery = z.strictObject({
  function: idSchema.optional().meta({ description: 'Only workflows that this function runs.' }),
  phase: z
    .union([z.string(), z.array(z.string())], { error: PHASE_RULE })
    .transform((texts) => [texts].flat().flatMap((text) => text.split(',')))
    .pipe(z.array(z.enum(RUN_PHASES, { error: PHASE_RULE })))
    .optional()
    .meta({
      description: `Only workflows whose function is in these phases, separated by commas: ${RUN_PHASES.join(', ')}. Repeatable.`,
    }),
  cursor: z
    .string({ error: CURSOR_RULE })
    .transform((cursor) => Buffer.from(cursor, 'base64url').toString())
    .refine(isTargetId, { error: CURSOR_RULE })
    .optional()
    .meta({ description: 'Continues after the previous page.' }),
  limit: limitSchema.optional(),
});

const signalBody = z
  .strictObject({
    name: idSchema.meta({ description: 'The name that a line of the function waits for.' }),
    value: z.unknown().optional().meta({ description: 'Any JSON; default null.' }),
  })
  .meta({ id: 'WorkflowSignal' });

const revokeBody = z.strictObject({ reason: reasonSchema }).meta({ id: 'RevokeTenure' });

export function workflowRoutes(server: ServerContext): Route[] {
  return [
    listRoute(server),
    getRoute(server),
    signalRoute(server),
    restartRoute(server),
    revokeRoute(server),
  ];
}

function listRoute({ holdfast: { workflows } }: ServerContext): Route {
  return workflowRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'List workflows',
    description:
      'In order of id, a page at a time. With a filter, a page that is not the last may be short or empty, because one request looks at a part of the workflows.',
    query: listQuery,
    responses: { 200: { description: 'One page.', body: workflowsSchema } },
    problems: [],
    async handle({ query: { function: name, phase, cursor, limit = DEFAULT_PAGE } }) {
      const isWanted = ({ run }: WorkflowView) =>
        (name === undefined || run?.function === name) &&
        (phase === undefined || (run !== null && phase.includes(run.phase)));
      const found: object[] = [];
      let searched = 0;
      let last = '';
      for await (const view of workflows.list(cursor === undefined ? {} : { after: cursor })) {
        if (found.length === limit || searched === MAX_SEARCHED) {
          const next = Buffer.from(last).toString('base64url');
          return { body: { workflows: found, cursor: next } };
        }
        searched++;
        last = view.id;
        if (isWanted(view)) found.push(listedJson(view));
      }
      return { body: { workflows: found } };
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
      const loaded = view.run && (await workflows.steps(id));
      const results = await workflows.callResults(id, loaded ?? { steps: [] });
      const run = runDetailJson(id, loaded, steps, results);
      return { body: { ...workflowJson(view), run, steps: steps.reverse().map(stepJson) } };
    },
  });
}

function signalRoute({ holdfast: { workflows } }: ServerContext): Route {
  return workflowRoute({
    method: 'POST',
    path: `${PATH}/{id}/signal`,
    access: 'v3:write',
    summary: 'Send a signal to a workflow',
    params: idParams,
    body: signalBody,
    description:
      'The store keeps it until a line of the function waits for it, and one line receives it. Sent twice, it is two signals.',
    responses: { 200: { description: 'It is kept.', body: signalledSchema } },
    problems: ['not-found', 'conflict', 'body-too-large'],
    async handle({ params: { id }, body: { name, value = null } }) {
      await workflows.signal(id, name, value);
      const body = { workflow: id, signal: name, kept: true };
      return { body, audit: { action: 'workflow.signal', subject: id } };
    },
  });
}

function restartRoute({ holdfast: { workflows } }: ServerContext): Route {
  return workflowRoute({
    method: 'POST',
    path: `${PATH}/{id}/restart`,
    access: 'v3:admin',
    summary: 'Restart a failed workflow',
    params: idParams,
    description:
      'Its function runs again, with all its tries. Steps that are kept are not taken again.',
    responses: { 200: { description: 'It is due.', body: restartedSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { id } }) {
      const phase = (await workflows.get(id))?.run?.phase;
      if (phase !== undefined && phase !== 'failed') throw notFailed(phase);
      await workflows.restart(id);
      const body = { workflow: id, restarted: true };
      return { body, audit: { action: 'workflow.restart', subject: id } };
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

function listedJson(view: WorkflowView): object {
  return { ...workflowJson(view), run: view.run && runJson(view.run) };
}

function workflowJson(view: WorkflowView): Omit<z.output<typeof workflowSchema>, 'run' | 'steps'> {
  const { id, state, epoch, leaseId, isHeld, instance, expiresInMs, unresolved } = view;
  return {
    id,
    state,
    epoch,
    leaseId,
    isHeld,
    instance,
    createdAt: Math.round(view.createdAtMs),
    changedAt: Math.round(view.changedAtMs),
    unresolved,
    expiresInMs: isHeld ? expiryJson(expiresInMs) : null,
  };
}

function stepJson({ position, atMs, epoch, leaseId, what }: HistoryEntry): object {
  const { kind, ...facts } = what;
  return { position, at: Math.round(atMs), epoch, leaseId, kind, facts };
}

function notFailed(phase: string): Problem {
  return new Problem('conflict', {
    detail: `The workflow has not failed: it is ${phase}. Nothing was changed.`,
  });
}

function workflowNotFound(): Problem {
  return new Problem('not-found', { detail: 'There is no workflow with this id.' });
}
