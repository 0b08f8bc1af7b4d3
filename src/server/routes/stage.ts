/** The demo's instances, which its page can kill, freeze and start. */
import { z } from 'zod';
import { STAGE_ACTIONS, STAGE_DIRECTIONS, type Stage, type StageAction } from '../demo-stage.ts';
import { Problem } from '../http/problem.ts';
import { type Route, routeGroup } from '../http/route.ts';
import { idSchema } from './json/schemas.ts';

const stageRoute = routeGroup({ group: 'operation', tenants: 'no' });
const PATH = '/api/v3/stage';
const DEMO_ONLY = 'Only in the demo (`holdfast demo`).';

const pictureSchema = z
  .object({
    actors: z.array(
      z.object({
        name: z.string(),
        instance: z.string().nullable().meta({ description: 'Null while it does not run.' }),
        pid: z.number().int().nullable(),
        state: z.enum(['running', 'frozen', 'dead', 'starting']),
      }),
    ),
  })
  .meta({ id: 'StagePicture', description: 'The instances of the demo.' });

const nameParams = z.strictObject({ name: idSchema });

const SUMMARIES: Readonly<Record<StageAction, string>> = {
  kill: 'Kill an instance',
  freeze: 'Freeze an instance',
  thaw: 'Let a frozen instance continue',
  start: 'Start a killed instance again',
};

export function stageRoutes(stage: Stage): Route[] {
  return [listRoute(stage), ...STAGE_ACTIONS.map((action) => actionRoute(stage, action))];
}

function listRoute(stage: Stage): Route {
  return stageRoute({
    method: 'GET',
    path: PATH,
    access: 'v3:read',
    summary: 'List the instances of the demo',
    description: DEMO_ONLY,
    responses: { 200: { description: 'The instances.', body: pictureSchema } },
    problems: [],
    async handle() {
      return { body: stage.picture() };
    },
  });
}

function actionRoute(stage: Stage, action: StageAction): Route {
  return stageRoute({
    method: 'POST',
    path: `${PATH}/{name}/${action}`,
    access: 'v3:admin',
    summary: SUMMARIES[action],
    params: nameParams,
    description: DEMO_ONLY,
    responses: { 200: { description: 'The instances after the change.', body: pictureSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { name } }) {
      const actor = stage.picture().actors.find((each) => each.name === name);
      if (actor === undefined)
        throw new Problem('not-found', { detail: 'The demo has no instance of this name.' });
      if (!STAGE_DIRECTIONS[action].includes(actor.state))
        throw new Problem('conflict', {
          detail: `The instance is ${actor.state}, so this action does not apply.`,
        });
      await stage.direct(name, action);
      return { body: stage.picture(), audit: { action: `stage.${action}`, subject: name } };
    },
  });
}
