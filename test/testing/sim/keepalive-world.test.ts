import { describe, expect, it } from 'vitest';
import { draw, KEEPALIVE_STATES, simulate } from '../../../testing/sim/index.ts';

/** So many are lived through here; `npm run sim -- --kind keepalives` has more. */
const WORLDS = 10;
const LONG = { timeout: 120_000 };

describe('a world of keepalives', () => {
  it(`B-25 ${WORLDS} of them keep every promise, and meet what is to be met`, LONG, async () => {
    const met = new Set<string>();
    for (let seed = 1; seed <= WORLDS; seed++) {
      const report = await simulate({ seed, hours: 0.5, kind: 'keepalives' });
      expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
      for (const [name] of report.counters) met.add(name);
    }
    expect(KEEPALIVE_STATES.filter((state) => !met.has(state))).toEqual([]);
  });
});
