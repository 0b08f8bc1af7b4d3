import { type ServerWorld, serverWorld, type WorldOptions } from './server-world.ts';
import { StandInStage } from './stand-in-stage.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';

/** Alive, and the holder of the target. */
export const MEMBER = 'api-1794735731650762000-c586043d';
/** Of what there is one each. */
export const TARGET = 'target';
export const LEASE = 'device';
export const WORKFLOW = 'order';

/** A world in which everything that operators do can be done: something of each kind is there. */
export async function operatingWorld(options: WorldOptions = {}) {
  const stage = new StandInStage();
  const world = await serverWorld({ stage, ...options });
  const { holdfast, store } = world;
  await store.members.beat({ id: MEMBER, attributes: {} }, { ttlMs: 60_000, timeoutMs: 1_000 });
  await holdfast.targets.add({ id: TARGET, url: 'http://x/' });
  await holdfast.acquire(TARGET, { holder: MEMBER, class: 'poll' });
  await holdfast.acquire(LEASE, { holder: 'ana' });
  const workflow = await holdfast.workflows.claim(WORKFLOW);
  await workflow.updateState({ step: 'paid' });
  const letter = await deadLetter(world, workflow);
  world.calls.length = 0;
  return { ...world, stage, workflow, letter };
}

/** Has an action of the workflow fail as often as it may; gives the id of what is left of it. */
async function deadLetter(
  { clock, holdfast }: ServerWorld,
  workflow: Awaited<ReturnType<ServerWorld['holdfast']['workflows']['claim']>>,
): Promise<string> {
  const processor = holdfast.processor({
    ...{ name: 'mailer', role: 'compute', tries: 1 },
    handlers: {
      SEND: () => {
        throw new Error('no answer from smtp://user:canary@host/');
      },
    },
  });
  await processor.start();
  await workflow.emit('SEND', {}, { target: 'mailer' });
  await clock.advance(3_000);
  await processor.stop();
  const { value } = await holdfast.workflows.deadLetters.list().next();
  if (value === undefined) throw new Error('no action has died');
  return value.id;
}
