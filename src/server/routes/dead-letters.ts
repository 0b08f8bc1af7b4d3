/** Dead letters: actions that failed on every try. List them, retry them or drop them. */
import { z } from 'zod';
import { isForeignText } from '../../core/ids.ts';
import { withoutCredentials } from '../../telemetry/facts.ts';
import type { DeadLetter } from '../../workflow/dead-letters.ts';
import { Problem } from '../http/problem.ts';
import { type Route, routeGroup } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { idSchema } from './json/schemas.ts';

const deadLetterRoute = routeGroup({ group: 'workflows', tenants: 'no' });
const PATH = '/api/v3/deadletters';
const MAX_LETTERS = 1_000;
const MAX_ID_BYTES = 256;
const ID_RULE = 'must be the part of its id after the slash';

export const letterSchema = z
  .object({
    id: z.string().meta({ description: '`target/…`' }),
    workflow: z.string(),
    type: z
      .string()
      .nullable()
      .meta({ description: 'The action’s type; null if it is unreadable.' }),
    tries: z.number().int(),
    reason: z.string(),
    diedAt: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'DeadLetter' });

const letterParams = z.strictObject({
  target: idSchema,
  id: z.string().refine((id) => isForeignText(id, MAX_ID_BYTES), { error: ID_RULE }),
});

export function deadLetterRoutes(server: ServerContext): Route[] {
  return [listRoute(server), retryRoute(server), dropRoute(server)];
}

function listRoute({ holdfast: { workflows } }: ServerContext): Route {
  return deadLetterRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'List dead letters',
    description: `Actions that failed on every try, the oldest of each target first; at most ${MAX_LETTERS}.`,
    responses: {
      200: {
        description: 'The dead letters.',
        body: z.object({ deadLetters: z.array(letterSchema) }).meta({ id: 'DeadLetters' }),
      },
    },
    problems: [],
    async handle() {
      const deadLetters: object[] = [];
      for await (const letter of workflows.deadLetters.list()) {
        deadLetters.push(letterJson(letter));
        if (deadLetters.length === MAX_LETTERS) break;
      }
      return { body: { deadLetters } };
    },
  });
}

function retryRoute({ holdfast: { workflows } }: ServerContext): Route {
  return deadLetterRoute({
    method: 'POST',
    path: `${PATH}/{target}/{id}/retry`,
    access: 'v3:admin',
    summary: 'Retry a dead letter',
    params: letterParams,
    description:
      'The workflow emits the action again: at once if an orchestrator holds it, else with the next claim.',
    responses: {
      200: {
        description: 'The workflow that emits it.',
        body: z.object({ id: z.string(), workflow: z.string() }).meta({ id: 'RetriedLetter' }),
      },
    },
    problems: ['not-found'],
    async handle({ params }) {
      const id = `${params.target}/${params.id}`;
      const workflow = await workflows.deadLetters.retry(id);
      if (workflow === null) throw letterNotFound();
      return { body: { id, workflow }, audit: { action: 'deadletter.retry', subject: id } };
    },
  });
}

function dropRoute({ holdfast: { workflows } }: ServerContext): Route {
  return deadLetterRoute({
    method: 'POST',
    path: `${PATH}/{target}/{id}/drop`,
    access: 'v3:admin',
    summary: 'Drop a dead letter',
    params: letterParams,
    description: 'Removes it. Its workflow already has the failure as the action’s result.',
    responses: {
      200: {
        description: 'It is removed.',
        body: z.object({ id: z.string(), dropped: z.literal(true) }).meta({ id: 'DroppedLetter' }),
      },
    },
    problems: ['not-found'],
    async handle({ params }) {
      const id = `${params.target}/${params.id}`;
      if (!(await workflows.deadLetters.drop(id))) throw letterNotFound();
      return { body: { id, dropped: true }, audit: { action: 'deadletter.drop', subject: id } };
    },
  });
}

function letterJson({ id, workflow, action, tries, reason, diedAt }: DeadLetter): object {
  const type = action?.action_type ?? null;
  return { id, workflow, type, tries, reason: withoutCredentials(reason), diedAt };
}

function letterNotFound(): Problem {
  return new Problem('not-found', {
    detail:
      'There is no such dead letter. It was retried or dropped before, or its workflow was removed.',
  });
}
