/** What Linux says of its processes in /proc. Elsewhere, and of those that are gone, nothing. */
import { readdirSync, readFileSync } from 'node:fs';
import type { GroupRecord } from './host.ts';

/** Elsewhere it is not known who is not there. */
export const CAN_LOOK = process.platform === 'linux';

export interface ProcessStat {
  readonly pid: number;
  /** Dead, and not buried: it can not act any more, but its id is still its own. */
  readonly isDead: boolean;
  /** Stopped by a signal, until another lets it go on. */
  readonly isStopped: boolean;
  readonly group: number;
  /** When it was started, in ticks since the host was booted: tells it from a later process with its id. */
  readonly startedTicks: number;
}

const STATE = 0;
const GROUP = 2;
/** Of all fields the 22nd, and the name's bracket closes the second. */
const STARTED = 19;

/** Null if there is no such process. */
export function statOf(pid: number | string): ProcessStat | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // Behind the name, which may have spaces and brackets of its own.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    pid: Number(pid),
    isDead: fields[STATE] === 'Z' || fields[STATE] === 'X',
    isStopped: fields[STATE] === 'T',
    group: Number(fields[GROUP]),
    startedTicks: Number(fields[STARTED]),
  };
}

/** Everybody in the group, the dead as well. */
export function membersOf(group: number): ProcessStat[] {
  return processes().filter((stat) => stat.group === group);
}

/** Whether a process was started with this in its environment. Somebody else's can not be read. */
export function hasInEnvironment(pid: number, name: string, value: string): boolean {
  return (read(`/proc/${pid}/environ`) ?? '').split('\0').includes(`${name}=${value}`);
}

/** The group of those who were started with this in their environment; null if there are none. */
export function groupStartedWith(name: string, value: string): GroupRecord | null {
  const found = processes().find(({ pid }) => hasInEnvironment(pid, name, value));
  if (found === undefined) return null;
  return { group: found.group, startedTicks: statOf(found.group)?.startedTicks ?? null };
}

/** All that can be seen from here. */
export function processes(): ProcessStat[] {
  if (!CAN_LOOK) return [];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(statOf).filter((stat) => stat !== null);
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
