import { expect, it } from 'vitest';
import { positionBefore } from '../../src/cli/commands/fleet/watch.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { EventPage } from '../../src/telemetry/event-log.ts';

const MINUTE_MS = 60_000;
const PAGE = 1_000;

/** A log with entries of these ages in ms, the oldest first; positions are their numbers, from 1. */
function logOf(agesMs: readonly number[]) {
  const nowMs = systemClock.wallMs();
  const all = agesMs.map((ageMs, i) => {
    return { position: String(i + 1), at: nowMs - ageMs, instance: 'me', event: 'lease.lost' };
  });
  return {
    async recall({ before }: { before?: string } = {}): Promise<EventPage> {
      const until = before === undefined ? all.length : Number(before) - 1;
      const from = Math.max(0, until - PAGE);
      const entries = all.slice(from, until).reverse();
      const position = entries.at(-1)?.position;
      return { entries, more: from > 0, gap: false, ...(position !== undefined && { position }) };
    },
  };
}

const old = (count: number) => new Array<number>(count).fill(60 * MINUTE_MS);
const young = (count: number) => new Array<number>(count).fill(MINUTE_MS);

it.each([
  ['nothing at all', [], { from: 'oldest' }],
  ['only what is young', young(3), { from: 'oldest' }],
  ['only what is old', old(3), { after: '3' }],
  ['young behind old', [...old(2), ...young(3)], { after: '2' }],
  ['the newest entry from a slow clock', [...old(2), ...young(3), ...old(1)], { after: '2' }],
  ['slow and right in turns', [...old(2), ...young(1), ...old(1), ...young(1)], { after: '2' }],
  ['young far back', [...old(5), ...young(1), ...old(PAGE / 2), ...young(1)], { after: '5' }],
  ['more old than a page', [...old(3 * PAGE), ...young(2)], { after: String(3 * PAGE) }],
])('watch --since begins before everything of that time: %s', async (_, ages, start) => {
  expect(await positionBefore(logOf(ages), 10 * MINUTE_MS)).toEqual(start);
});
