/**
 * What Linux shows of processes in /proc. On other systems, and of processes that are gone:
 * nothing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import type { GroupRecord } from './host.ts';

/** On other systems nothing tells which processes are gone. */
export const HAS_PROC = process.platform === 'linux';

export interface ProcessStat {
  readonly pid: number;
  /** A zombie: it cannot act any more, but still has its id. */
  readonly isDead: boolean;
  /** Stopped by a signal, until another signal continues it. */
  readonly isStopped: boolean;
  readonly group: number;
  /**
   * When it was started, in ticks since the boot: tells it from a later process with the same id.
   */
  readonly startedTicks: number;
}

const STATE = 0;
const GROUP = 2;
/** The 22nd of all fields; the bracket after the name closes the second. */
const STARTED = 19;

/** Null: there is no such process. */
export function statOf(pid: number | string): ProcessStat | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // After the name, which may itself have spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return {
    pid: Number(pid),
    isDead: fields[STATE] === 'Z' || fields[STATE] === 'X',
    isStopped: fields[STATE] === 'T',
    group: Number(fields[GROUP]),
    startedTicks: Number(fields[STARTED]),
  };
}

/** All members of the group, zombies included. */
export function membersOf(group: number): ProcessStat[] {
  return processes().filter((stat) => stat.group === group);
}

/** Whether the process was started with this variable. False for processes of another user. */
export function hasInEnvironment(pid: number, name: string, value: string): boolean {
  return (read(`/proc/${pid}/environ`) ?? '').split('\0').includes(`${name}=${value}`);
}

/** The group of a process that was started with this variable; null: there is none. */
export function groupStartedWith(name: string, value: string): GroupRecord | null {
  const found = processes().find(({ pid }) => hasInEnvironment(pid, name, value));
  if (found === undefined) return null;
  return { group: found.group, startedTicks: statOf(found.group)?.startedTicks ?? null };
}

/** All processes that this one can see. */
export function processes(): ProcessStat[] {
  if (!HAS_PROC) return [];
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
