/** The reports of instances since the dashboard was opened: a point per heartbeat that said something new. */
import { effect, untracked } from '@preact/signals';
import { members } from './fleet.ts';

export interface SeenVitals {
  /** Seconds since 1970, as charts count. */
  readonly at: number;
  readonly renewP50Ms: number | null;
  readonly renewP99Ms: number | null;
  readonly loopDelayMs: number;
}

/** A quarter of an hour where heartbeats come each second; the oldest go first. */
const MOST_KEPT = 900;
/** Closer together, and they are the same. */
const APART_S = 0.9;

const seen = new Map<string, SeenVitals[]>();

export function vitalsSeen(member: string): readonly SeenVitals[] {
  return seen.get(member) ?? [];
}

effect(() => {
  const all = members.value;
  untracked(() => {
    const at = Date.now() / 1_000;
    for (const { id, vitals } of all) {
      if (vitals === null) continue;
      const points = seen.get(id) ?? [];
      seen.set(id, points);
      if (at - (points.at(-1)?.at ?? 0) < APART_S) continue;
      const { renewP50Ms, renewP99Ms, loopDelayMs } = vitals;
      points.push({ at, renewP50Ms, renewP99Ms, loopDelayMs });
      if (points.length > MOST_KEPT) points.shift();
    }
    for (const id of seen.keys()) if (!all.some((member) => member.id === id)) seen.delete(id);
  });
});
