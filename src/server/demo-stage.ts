/**
 * Instances that are there to be killed, for whoever wants to see what then happens. Only where a server is given a stage are there routes for
 * it: what starts and ends processes has no business in a server that others rely on.
 */

export const STAGE_ACTIONS = ['kill', 'freeze', 'thaw', 'start'] as const;
export type StageAction = (typeof STAGE_ACTIONS)[number];

export interface StageActor {
  /** It stays the same, however often it is killed and started again. */
  readonly name: string;
  /** Its instance id; null while it does not run, or has not said. */
  readonly instance: string | null;
  readonly pid: number | null;
  readonly state: 'running' | 'frozen' | 'dead' | 'starting';
}

export interface StagePicture {
  readonly actors: readonly StageActor[];
}

export interface Stage {
  /** From what is known: it asks nobody. */
  picture(): StagePicture;
  /** Resolves when it is done, or for `start` under way. Only for actors of the picture, in a state in which it makes sense. */
  direct(name: string, action: StageAction): Promise<void>;
}

/** In which states an actor may be told what. */
export const STAGE_DIRECTIONS: Readonly<Record<StageAction, readonly StageActor['state'][]>> = {
  kill: ['running', 'frozen', 'starting'],
  freeze: ['running'],
  thaw: ['frozen'],
  start: ['dead'],
};
