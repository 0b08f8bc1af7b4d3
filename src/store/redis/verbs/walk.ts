import { type Clock, timeLeft } from '../../../core/clock.ts';
import { StoreUnreachableError } from '../../../core/errors.ts';
import { isName } from '../../../core/ids.ts';
import type { Where } from '../client/replies.ts';
import { escapeGlob } from '../keys.ts';
import type { Servers } from '../topology/servers.ts';

/** A step with less time than this left might not be answered in it, and cost the connection. */
const LEAST_MS = 100;

/**
 * For what takes many steps within one time limit: how much each of them has. Throws when there is
 * too little for another.
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
 * What stands behind a text in the names of keys, in steps, as far as it is a name that we might
 * have given. It may give the same more than once. What is there from the beginning of the walk to
 * its end is among it.
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
