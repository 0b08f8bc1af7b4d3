/**
 * Narrows a failure down: which of the planned faults does it need? Leaves out what comes after,
 * then whole episodes, then faults, in ever smaller groups, as long as the same promise is still
 * broken.
 */
import type { Episode } from './faults.ts';
import { simulateWorld, type WorldOptions, type WorldReport } from './world.ts';

/** So many worlds are tried at most. */
const MOST_TRIES = 80;

export interface Shrunk {
  readonly report: WorldReport;
  readonly tries: number;
}

export function shrink(options: WorldOptions, failed: WorldReport): Promise<Shrunk> {
  return shrinkPlan<WorldReport>(failed, (episodes) => simulateWorld({ ...options, episodes }));
}

/** What a run with planned faults came to. */
export interface PlannedRun<E extends Episode<string>> {
  readonly violation: { readonly invariant: string } | null;
  readonly episodes: readonly E[];
  /** The one in which it ended. */
  readonly episode: number;
}

/** The same for any world whose faults are planned. `run` lets it live with other episodes. */
export async function shrinkPlan<R extends PlannedRun<Episode<string>>>(
  failed: R,
  run: (episodes: R['episodes']) => Promise<R>,
): Promise<{ readonly report: R; readonly tries: number }> {
  const invariant = failed.violation?.invariant;
  let best = failed;
  let tries = 0;
  const attempt = async (episodes: R['episodes']): Promise<boolean> => {
    if (tries >= MOST_TRIES) return false;
    tries++;
    const report = await run(episodes);
    if (report.violation?.invariant !== invariant) return false;
    best = { ...report, episodes };
    return true;
  };
  const lived = failed.episodes.slice(0, failed.episode + 1);
  await attempt(lived);
  for (let i = best.episodes.length - 2; i >= 0; i--)
    await attempt(best.episodes.filter((_, at) => at !== i));
  let group = Math.ceil(countOf(best.episodes) / 2);
  while (group >= 1 && tries < MOST_TRIES) {
    let isSmaller = false;
    for (let from = countOf(best.episodes) - group; from > -group; from -= group)
      if (await attempt(without(best.episodes, from, group))) isSmaller = true;
    if (group === 1 && !isSmaller) break;
    group = isSmaller ? Math.min(group, Math.ceil(countOf(best.episodes) / 2)) : group >> 1;
  }
  return { report: best, tries };
}

function countOf(episodes: readonly Episode<string>[]): number {
  return episodes.reduce((sum, { faults }) => sum + faults.length, 0);
}

/** Without so many faults from the given one on, counted over all episodes. */
function without<E extends Episode<string>>(
  episodes: readonly E[],
  from: number,
  count: number,
): E[] {
  let number = 0;
  const isKept = (): boolean => {
    const at = number++;
    return at < from || at >= from + count;
  };
  return episodes.map((episode) => ({ ...episode, faults: episode.faults.filter(isKept) }));
}
