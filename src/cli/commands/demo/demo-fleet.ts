import type { MemberView } from '../../../fleet/watch/fleet.ts';
import type { Stage, StageAction, StagePicture } from '../../../server/demo-stage.ts';
import { InstanceRun, type InstanceRunOptions } from './instance-run.ts';

const NAMES = ['ana', 'ben', 'cleo'];

/** All who are on stage. */
export class DemoFleet implements Stage {
  readonly actors: readonly InstanceRun[];

  constructor(options: InstanceRunOptions) {
    this.actors = NAMES.map((name) => new InstanceRun(name, options));
  }

  picture(): StagePicture {
    return { actors: this.actors.map(({ picture }) => picture) };
  }

  async direct(name: string, action: StageAction): Promise<void> {
    await this.actors.find((actor) => actor.name === name)?.[action]();
  }

  /** Resolves when each has a process. */
  async begin(): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.start()));
  }

  see(members: readonly MemberView[]): void {
    for (const actor of this.actors) actor.see(members);
  }

  /** Resolves when all have handed over, and ended. */
  async leave(): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.stop()));
  }

  /** At once, whatever they are doing. */
  async kill(): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.kill()));
  }
}
