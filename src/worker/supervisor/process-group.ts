import { type Clock, systemClock } from '../../core/clock.ts';
import type { GroupRecord } from './host.ts';
import { type ProcessStat, processes, statOf } from './proc.ts';

/** Pauses between two checks whether a group is gone double from the first to the second. */
const MIN_PAUSE_MS = 2;
const MAX_PAUSE_MS = 50;
/** How long a group may take to be gone after SIGKILL. After that it cannot be ended by us. */
export const KILLED_WITHIN_MS = 2_000;

/** The pauses before each next check of a group. */
export function* pollPauses(): Generator<number, never> {
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) yield pauseMs;
}

/** A process group that is ours to end. */
export interface ProcessGroup {
  /** Sends a signal to all members. A group that is gone is no error. */
  signal(signal: NodeJS.Signals): void;
  /** Whether a member can still act. */
  isAlive(): boolean;
}

/**
 * The group of `leader`. A group outlives its leader while it has members, and its id is not
 * reused.
 */
export function processGroup(leader: number): ProcessGroup {
  return {
    signal: (signal) => void send(leader, signal),
    isAlive: () => send(leader, 0) && !isAllZombies(leader),
  };
}

/**
 * The group that was started then. If another process has the id of its leader, the group is gone:
 * no process gets an id that a group still has.
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

/** Ends a group: asks, waits for the grace, then kills. False: some of it could not be ended. */
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
  for (const pauseMs of pollPauses()) {
    if (!group.isAlive()) return true;
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) return false;
    await clock.sleep(Math.min(pauseMs, leftMs));
  }
  return false;
}

/** False: there is no such group. Members of another user exist, but cannot be signalled. */
function send(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Whether only zombies are left. A dead process stays in its group until its parent reaps it, and
 * in a container whose first process does not, that is never. Without /proc all members count as
 * alive.
 *
 * All checks in one turn of the event loop share one reading of /proc: otherwise stopping hundreds
 * of commands would read every process of the host for each of them. The reading cannot be too old
 * to show that all are dead, because dead processes start no others.
 */
function isAllZombies(group: number): boolean {
  if (reading === null) {
    reading = processes();
    systemClock.afterInput(() => {
      reading = null;
    });
  }
  const members = reading.filter((stat) => stat.group === group);
  return members.length > 0 && members.every(({ isDead }) => isDead);
}

let reading: readonly ProcessStat[] | null = null;
