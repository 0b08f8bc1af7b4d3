/** Actions that were tried as often as they may be: to look at, to have tried again, or to throw away. */
import { z } from 'zod';
import { isForeignText } from '../../core/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import { withoutCredentials } from '../../telemetry/facts.ts';
import type { DeadLetter } from '../../workflow/dead-letters.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import { idSchema } from './json/schemas.ts';

const PATH = '/api/v3/deadletters';
/** Who has more than this has one problem, not thousands. */
const MOST_LETTERS = 1_000;
const LONGEST_ID = 256;
const ID_RULE = 'it is the part of its id after the slash';

export const letterSchema = z
  .object({
    id: z.string().meta({ description: '`target/…`' }),
    workflow: z.string(),
    type: z.string().nullable().meta({ description: 'Of the action; null: it is unreadable.' }),
    tries: z.number().int(),
    reason: z.string(),
    diedAt: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'DeadLetter' });

const letterParams = z.strictObject({
  target: idSchema,
  id: z.string().refine((id) => isForeignText(id, LONGEST_ID), { error: ID_RULE }),
});

export interface DeadLetterParts {
  readonly holdfast: Pick<Holdfast, 'workflows'>;
}

export function deadLetterRoutes(parts: DeadLetterParts): Route[] {
  return [listRoute(parts), retryRoute(parts), dropRoute(parts)];
}

function listRoute({ holdfast: { workflows } }: DeadLetterParts): Route {
  return route({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    tenants: 'no',
    group: 'workflows',
    summary: 'List dead letters',
    description: `Actions that failed too often, of each target the oldest first; ${MOST_LETTERS} at most.`,
    answers: {
      200: {
        description: 'The first of them.',
        body: z.object({ deadLetters: z.array(letterSchema) }).meta({ id: 'DeadLetters' }),
      },
    },
    problems: [],
    async handle() {
      const deadLetters: object[] = [];
      for await (const letter of workflows.deadLetters.list()) {
        deadLetters.push(letterJson(letter));
        if (deadLetters.length === MOST_LETTERS) break;
      }
      return { body: { deadLetters } };
    },
  });
}

function retryRoute({ holdfast: { workflows } }: DeadLetterParts): Route {
  return route({
    method: 'POST',
    path: `${PATH}/{target}/{id}/retry`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'workflows',
    summary: 'Try a dead letter again',
    params: letterParams,
    description:
      'Its workflow emits it anew: at once if somebody holds it, else by the next claim.',
    answers: {
      200: {
        description: 'Which workflow emits it.',
        body: z.object({ id: z.string(), workflow: z.string() }).meta({ id: 'RetriedLetter' }),
      },
    },
    problems: ['not-found'],
    async handle({ params }) {
      const id = `${params.target}/${params.id}`;
      const workflow = await workflows.deadLetters.retry(id);
      if (workflow === null) throw noLetter();
      return { body: { id, workflow }, act: { action: 'deadletter.retry', subject: id } };
    },
  });
}

function dropRoute({ holdfast: { workflows } }: DeadLetterParts): Route {
  return route({
    method: 'POST',
    path: `${PATH}/{target}/{id}/drop`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'workflows',
    summary: 'Throw a dead letter away',
    params: letterParams,
    description: 'Its workflow has been told of the failure long ago.',
    answers: {
      200: {
        description: 'It is gone.',
        body: z.object({ id: z.string(), dropped: z.literal(true) }).meta({ id: 'DroppedLetter' }),
      },
    },
    problems: ['not-found'],
    async handle({ params }) {
      const id = `${params.target}/${params.id}`;
      if (!(await workflows.deadLetters.drop(id))) throw noLetter();
      return { body: { id, dropped: true }, act: { action: 'deadletter.drop', subject: id } };
    },
  });
}

function letterJson({ id, workflow, action, tries, reason, diedAt }: DeadLetter): object {
  const type = action?.action_type ?? null;
  return { id, workflow, type, tries, reason: withoutCredentials(reason), diedAt };
}

function noLetter(): Problem {
  return new Problem('not-found', {
    detail:
      'There is no such dead letter: it was retried or dropped before, or its workflow is gone.',
  });
}
