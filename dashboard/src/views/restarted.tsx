import { now } from '../data/now.ts';
import { startOf } from '../data/palette.ts';
import { isNewRestart, restartOf } from '../data/restarts.ts';
import { serverWallOf } from '../data/server-time.ts';
import { moment } from '../data/words.ts';

/** Marks an instance that has replaced an earlier one of the same name. For some minutes, or always. */
export function Restarted({ id, always = false }: { id: string; always?: boolean }) {
  // Restarts are rare: only they read the clock, which ticks.
  if (restartOf(id) === undefined) return null;
  if (!always && !isNewRestart(id, serverWallOf(now.value))) return null;
  return (
    <span
      class="badge info"
      title={`An earlier instance of this name has ended. This one started at ${moment(startOf(id) ?? 0)}.`}
    >
      restarted
    </span>
  );
}
