/** For show: instances to be killed, frozen and brought back from the page. */
import { z } from 'zod';
import { STAGE_ACTIONS, STAGE_DIRECTIONS, type Stage, type StageAction } from '../demo-stage.ts';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import { idSchema } from './json/schemas.ts';

const PATH = '/api/v3/stage';

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
  .meta({ id: 'StagePicture', description: 'Instances that are there to be killed.' });

const nameParams = z.strictObject({ name: idSchema });

const SUMMARIES: Readonly<Record<StageAction, string>> = {
  kill: 'Kill an instance, without a warning',
  freeze: 'Stop an instance where it is',
  thaw: 'Let a frozen instance go on',
  start: 'Start a killed instance again',
};

export function stageRoutes(stage: Stage): Route[] {
  return [
    route({
      method: 'GET',
      path: PATH,
      access: 'v3:read',
      tenants: 'no',
      group: 'operation',
      summary: 'Instances that are there to be killed',
      description: 'Only where the server was started for show (`holdfast demo`).',
      answers: { 200: { description: 'How they are.', body: pictureSchema } },
      problems: [],
      async handle() {
        return { body: stage.picture() };
      },
    }),
    ...STAGE_ACTIONS.map((action) => directionRoute(stage, action)),
  ];
}

function directionRoute(stage: Stage, action: StageAction): Route {
  return route({
    method: 'POST',
    path: `${PATH}/{name}/${action}`,
    access: 'v3:admin',
    tenants: 'no',
    group: 'operation',
    summary: SUMMARIES[action],
    params: nameParams,
    description: 'Only where the server was started for show (`holdfast demo`).',
    answers: { 200: { description: 'How they are now.', body: pictureSchema } },
    problems: ['not-found', 'conflict'],
    async handle({ params: { name } }) {
      const actor = stage.picture().actors.find((one) => one.name === name);
      if (actor === undefined)
        throw new Problem('not-found', { detail: 'There is no instance of this name on stage.' });
      if (!STAGE_DIRECTIONS[action].includes(actor.state))
        throw new Problem('conflict', { detail: `It is ${actor.state}: there is nothing to do.` });
      await stage.direct(name, action);
      return { body: stage.picture(), act: { action: `stage.${action}`, subject: name } };
    },
  });
}
