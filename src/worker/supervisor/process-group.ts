import { type Clock, systemClock } from '../../core/clock.ts';
import type { GroupRecord } from './host.ts';
import { type ProcessStat, processes, statOf } from './proc.ts';

/** Pauses between two looks whether a group is gone double from the first to the second. */
const LOOK_FIRST_MS = 2;
const LOOK_MOST_MS = 50;
/** How long what got SIGKILL may take to be gone; what is still there then can not be ended by us. */
export const KILLED_WITHIN_MS = 2_000;

/** How long to wait before looking at a group again, from one look to the next. */
export function* lookPauses(): Generator<number, never> {
  for (let pauseMs = LOOK_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, LOOK_MOST_MS)) yield pauseMs;
}

/** A process group that is ours to end. */
export interface ProcessGroup {
  /** Sends a signal to all of it. A group that is gone is fine. */
  signal(signal: NodeJS.Signals): void;
  /** Whether anybody in it can still act. */
  isAlive(): boolean;
}

/** The group that `leader` leads, or led: a group outlives its leader while it has members, and its id is not reused. */
export function processGroup(leader: number): ProcessGroup {
  return {
    signal: (signal) => void send(leader, signal),
    isAlive: () => send(leader, 0) && !isAllZombies(leader),
  };
}

/**
 * The group that was started then. Where another process has the id of its leader, it is gone: no id is given to anybody for as
 * long as a group has it.
 */
export function recordedGroup({ group, startedTicks }: GroupRecord): ProcessGroup {
  const processes = processGroup(group);
  const isAnother = () => {
    const leader = startedTicks === null ? null : statOf(group);
    return leader !== null && leader.startedTicks !== startedTicks;
  };
  return {
    signal: (signal) => void (isAnother() || processes.signal(signal)),
    isAlive: () => !isAnother() && processes.isAlive(),
  };
}

/** Ends a group: asks, waits for as long as the grace, then kills. False if some of it could not be ended. */
export async function endGroup(
  group: ProcessGroup,
  graceMs: number,
  clock: Clock,
): Promise<boolean> {
  if (graceMs > 0) {
    group.signal('SIGTERM');
    group.signal('SIGCONT');
    if (await isGoneWithin(group, graceMs, clock)) return true;
  }
  group.signal('SIGKILL');
  return isGoneWithin(group, KILLED_WITHIN_MS, clock);
}

async function isGoneWithin(group: ProcessGroup, ms: number, clock: Clock): Promise<boolean> {
  const endMs = clock.monotonicMs() + ms;
  for (const pauseMs of lookPauses()) {
    if (!group.isAlive()) return true;
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) return false;
    await clock.sleep(Math.min(pauseMs, leftMs));
  }
  return false;
}

/** False if there is no such group. Members that belong to another user can not be signalled, but they are there. */
function send(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * The dead stay in their group until somebody reaps them, and in a container whose first process does not, that is never.
 * Where there is no /proc, everybody in the group counts as alive.
 *
 * All who ask in one turn of the event loop share one look: who stops hundreds of commands would else look at every process
 * of the host for each of them. It can not be too old to tell that all are dead, for the dead have no children.
 */
function isAllZombies(group: number): boolean {
  if (seen === null) {
    seen = processes();
    systemClock.afterInput(() => {
      seen = null;
    });
  }
  const members = seen.filter((stat) => stat.group === group);
  return members.length > 0 && members.every(({ isDead }) => isDead);
}

let seen: readonly ProcessStat[] | null = null;
