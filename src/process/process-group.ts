import { readdirSync, readFileSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';

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
 */
function isAllZombies(group: number): boolean {
  if (process.platform !== 'linux') return false;
  let members = 0;
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const [state, , groupOfPid] = statOf(pid);
    if (groupOfPid !== String(group)) continue;
    if (state !== 'Z' && state !== 'X') return false;
    members += 1;
  }
  return members > 0;
}

/** State, parent and group, and what follows them: behind the name, which may have spaces and brackets of its own. */
function statOf(pid: string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}
