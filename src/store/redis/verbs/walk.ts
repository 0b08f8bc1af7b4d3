import { type Clock, timeLeft } from '../../../core/clock.ts';
import { StoreUnreachableError } from '../../../core/errors.ts';
import { isName } from '../../../core/ids.ts';
import type { Where } from '../client/replies.ts';
import { escapeGlob } from '../keys.ts';
import type { Servers } from '../topology/servers.ts';

/** A step with less time than this might not be answered in time, which ends the connection. */
const LEAST_MS = 100;

/**
 * The time left for each step of a verb that takes many steps within one time limit. Throws when
 * too little is left for another step.
 */
export function timeForSteps(clock: Clock, timeoutMs: number, where: Where): () => number {
  const leftMs = timeLeft(clock, timeoutMs);
  let isFirst = true;
  return () => {
    const ms = leftMs();
    if (!isFirst && ms < LEAST_MS) {
      const why = `there is more to look at than ${Math.round(timeoutMs)} ms are enough for`;
      throw new StoreUnreachableError({ ...where, why });
    }
    isFirst = false;
    return ms;
  };
}

/**
 * Yields the names that follow `beginning` in the names of keys, where they are valid names. It may
 * yield a name more than once. It yields every name that exists during the whole walk.
 */
export async function* walk(
  servers: Servers,
  beginning: string,
  leftMs: () => number,
): AsyncGenerator<string[]> {
  const pattern = `${escapeGlob(beginning)}*`;
  let cursor: string | undefined;
  do {
    const page = await servers.scan(pattern, cursor, leftMs());
    const names = page.names.map((name) => name.slice(beginning.length)).filter(isName);
    if (names.length > 0) yield names;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
