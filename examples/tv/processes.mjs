/** What the kernel says of processes that were started here. Those with the same word in their environment belong together. */
import { readdirSync, readFileSync } from 'node:fs';

/** All whose environment says so: `{ pid, name, env }`. */
export function processesWith(variable, value) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const env = environmentOf(name);
      return env?.[variable] === value ? [{ pid: Number(name), name: nameOf(name), env }] : [];
    });
}

/** A dead one that nobody has buried is not. */
export function isAlive(pid) {
  const stat = read(`/proc/${pid}/stat`);
  return stat !== null && !['Z', 'X'].includes(stat.charAt(stat.lastIndexOf(')') + 2));
}

/** Kills it, unless it is gone by itself. */
export function end(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function environmentOf(pid) {
  const text = read(`/proc/${pid}/environ`);
  if (text === null || text === '') return null;
  return Object.fromEntries(
    text.split('\0').map((line) => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]),
  );
}

function nameOf(pid) {
  return (read(`/proc/${pid}/comm`) ?? '').trim();
}

/** Null where it is gone, or another user's. */
function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
