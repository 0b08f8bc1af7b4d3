/** Events of the log about an instance that drains, or that is gone. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import { readGap } from '../../../../src/core/gap.ts';

export interface Heirs {
  readonly count: number;
  /** Who took how many, the most first. */
  readonly by: readonly (readonly [string, number])[];
  /** The longest of the gaps. */
  readonly gapMs: number;
  /** When the last was taken; 0 for never. */
  readonly lastAt: number;
}

/** Who took what from it, since then. */
export function heirsOf(
  id: string,
  events: readonly ApiEvent[],
  { since = 0, how }: { since?: number; how?: string } = {},
): Heirs {
  const by = new Map<string, number>();
  let gapMs = 0;
  let lastAt = 0;
  for (const event of events) {
    if (event.event !== 'target.taken' || event.from !== id || event.instance === id) continue;
    if (event.at < since || (how !== undefined && event.how !== how)) continue;
    by.set(event.instance, (by.get(event.instance) ?? 0) + 1);
    gapMs = Math.max(gapMs, readGap(event).gapMs);
    lastAt = Math.max(lastAt, event.at);
  }
  const sorted = [...by].sort(([, a], [, b]) => b - a);
  const count = sorted.reduce((sum, [, some]) => sum + some, 0);
  return { count, by: sorted, gapMs, lastAt };
}

/** Since when it drains: several may tell, and the first is right; null where the log does not have it any more. */
export function drainingSince(id: string, events: readonly ApiEvent[]): number | null {
  let since: number | null = null;
  for (const { event, member, at } of events) {
    if (member !== id) continue;
    if (event === 'member.undrained') break;
    if (event === 'member.draining') since = at;
  }
  return since;
}

export interface Leaving {
  readonly at: number;
  readonly isExpired: boolean;
  readonly noticedBy: string;
}

/** When it left, and how: as the first one tells who noticed. */
export function leavingOf(id: string, events: readonly ApiEvent[]): Leaving | null {
  let leaving: Leaving | null = null;
  for (const { event, member, at, reason, instance } of events) {
    if (event !== 'member.left' || member !== id) continue;
    leaving = { at, isExpired: reason === 'expired', noticedBy: instance };
  }
  return leaving;
}
