/**
 * Which processor runs whom. Left to the scheduler, a client and a server that talk by turns share one processor at one
 * time and have two at another, and two processors take twice as long: the one that waits is idle, and has to be woken.
 * `taskset` of util-linux decides it instead: contenders on one processor, the server on another.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** `{ client, server }`, or null: there is no `taskset`, or this process may use one processor only. */
export const placement = findPlacement();

export const PLACED =
  placement === null
    ? 'not pinned: no taskset, or one processor'
    : `contenders on processor ${placement.client}, Redis on ${placement.server}`;

function findPlacement() {
  try {
    const status = readFileSync('/proc/self/status', 'utf8');
    const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? '';
    const [client, server] = list.split(',').flatMap(range).map(String);
    if (server === undefined) return null;
    return spawnSync('taskset', ['--version']).status === 0 ? { client, server } : null;
  } catch {
    // Another system than Linux.
    return null;
  }
}

/** `2-4` → 2, 3, 4. */
function range(text) {
  const [first, last = first] = text.split('-').map(Number);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** Moves a process that runs, with all of its threads. */
export function pin(pid, processor) {
  const { status, stderr } = spawnSync('taskset', ['-a', '-c', '-p', processor, String(pid)]);
  if (status !== 0) throw new Error(`taskset could not move process ${pid}: ${stderr}`);
}
