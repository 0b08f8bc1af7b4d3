import type { Timeline } from './timeline.ts';

/** What holds a world to its promises. */
export interface WorldJudge {
  readonly violation: object | null;
  report(invariant: 'tidiness', subject: string, text: string): unknown;
}

/** Something has been found: the rest of this world does not matter. */
export class Stop extends Error {}

/**
 * Lets a world live until it is over or has broken a promise; rejections that no code handles break
 * one, too.
 */
export async function runWorld(world: {
  readonly timeline: Timeline;
  readonly audit: WorldJudge;
  /** After everything that happens. */
  settled(): void;
  live(): Promise<void>;
}): Promise<void> {
  const { timeline, audit } = world;
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown) => rejections.push(reason);
  process.on('unhandledRejection', onRejection);
  timeline.onSettled = () => {
    world.settled();
    if (audit.violation !== null) throw new Stop();
  };
  try {
    await world.live();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
  } finally {
    process.off('unhandledRejection', onRejection);
  }
  const [reason] = rejections;
  if (reason !== undefined) audit.report('tidiness', '', `no code handles a rejection: ${reason}`);
}
