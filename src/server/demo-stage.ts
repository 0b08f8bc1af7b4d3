/**
 * The instances of `holdfast demo`, which users may kill, freeze and start from the page. Routes
 * for them exist only where a server is given a stage: a production server must not start or kill
 * processes.
 */

export const STAGE_ACTIONS = ['kill', 'freeze', 'thaw', 'start'] as const;
export type StageAction = (typeof STAGE_ACTIONS)[number];

export interface StageActor {
  /** Stays the same after a restart. */
  readonly name: string;
  /** Its instance id; null while it does not run, or has not reported it yet. */
  readonly instance: string | null;
  readonly pid: number | null;
  readonly state: 'running' | 'frozen' | 'dead' | 'starting';
}

export interface StagePicture {
  readonly actors: readonly StageActor[];
}

export interface Stage {
  /** From memory, without I/O. */
  picture(): StagePicture;
  /** Resolves when the action is done, or `start` has begun. See `STAGE_DIRECTIONS`. */
  direct(name: string, action: StageAction): Promise<void>;
}

/** The states in which each action applies. */
export const STAGE_DIRECTIONS: Readonly<Record<StageAction, readonly StageActor['state'][]>> = {
  kill: ['running', 'frozen', 'starting'],
  freeze: ['running'],
  thaw: ['frozen'],
  start: ['dead'],
};
