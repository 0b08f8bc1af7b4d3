import type { Stage, StageAction, StageActor } from '../../src/server/demo-stage.ts';

/** A stage without processes: what its actors are told, they do. */
export class StandInStage implements Stage {
  readonly told: [name: string, action: StageAction][] = [];
  readonly #states = new Map<string, StageActor['state']>([
    ['ada', 'running'],
    ['bob', 'dead'],
  ]);

  picture() {
    const actors = [...this.#states].map(([name, state]) => {
      const isThere = state !== 'dead';
      return {
        name,
        state,
        instance: isThere ? `${name}-1-00000000` : null,
        pid: isThere ? 7 : null,
      };
    });
    return { actors };
  }

  async direct(name: string, action: StageAction): Promise<void> {
    this.told.push([name, action]);
    const next = { kill: 'dead', freeze: 'frozen', thaw: 'running', start: 'starting' } as const;
    this.#states.set(name, next[action]);
  }
}
