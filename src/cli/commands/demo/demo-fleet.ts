import type { MemberView } from '../../../fleet/watch/fleet.ts';
import type { Stage } from '../../../server/demo-stage.ts';
import { InstanceRun, type InstanceRunOptions } from './instance-run.ts';

const NAMES = ['ana', 'ben', 'cleo'];

/** The instances of the demo, which the page can kill, freeze, thaw and start. */
export type DemoFleet = ReturnType<typeof makeDemoFleet>;

export function makeDemoFleet(options: InstanceRunOptions) {
  const actors = NAMES.map((name) => new InstanceRun(name, options));
  const stage: Stage = {
    picture: () => ({ actors: actors.map(({ picture }) => picture) }),
    async direct(name, action) {
      await actors.find((actor) => actor.name === name)?.[action]();
    },
  };
  return {
    ...stage,
    actors,
    /** Resolves when each instance has a process. */
    start: () => Promise.all(actors.map((actor) => actor.start())),
    refresh(members: readonly MemberView[]) {
      for (const actor of actors) actor.refresh(members);
    },
    /** Resolves when all instances have handed over and ended. */
    stop: () => Promise.all(actors.map((actor) => actor.stop())),
    /** Ends all instances at once. */
    kill: () => Promise.all(actors.map((actor) => actor.kill())),
  };
}
