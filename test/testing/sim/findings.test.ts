import { describe, expect, it } from 'vitest';
import { type Finding, type Regression, tell, withFound } from '../../../testing/sim/index.ts';

const FOUND: Finding = {
  options: { seed: 42, hours: 1, targets: 5, intents: 4 },
  violation: {
    invariant: 'exclusion',
    atMs: 1_000,
    target: 'poll:t1',
    text: 'a and b both may work on poll:t1',
  },
  shrunk: {
    episodes: [
      {
        lastsMs: 10_000,
        faults: [
          { kind: 'freeze at', atMs: 1, forMs: 2, seat: 0, size: 0, point: 'renew' },
          { kind: 'flush', atMs: 3, forMs: 4, seat: 0, size: 0, point: 'clock' },
        ],
      },
    ],
    drawing: 'i0.1 ====',
    tries: 17,
  },
};

describe('what was found', () => {
  it('is told with its seed, its commit, how to see it again, the faults it needs and the drawing', () => {
    expect(tell(FOUND, 'abc1234')).toBe(
      [
        '✗ seed 42: exclusion: a and b both may work on poll:t1',
        '  commit abc1234; again: npm run sim -- --seed 42 --hours 1 --world 1 --targets 5 --intents 4',
        '  2 faults are enough (17 worlds tried): freeze at renew, flush',
        '',
        'i0.1 ====',
      ].join('\n'),
    );
  });

  it('is kept, narrowed down, behind what is known, and once', () => {
    const known: Regression[] = [{ commit: 'old', broke: 'grants: x', options: { seed: 1 } }];
    const once = withFound(known, [FOUND], 'abc1234');
    expect(once).toEqual([
      known[0],
      {
        commit: 'abc1234',
        broke: 'exclusion: a and b both may work on poll:t1',
        options: { ...FOUND.options, episodes: FOUND.shrunk.episodes },
      },
    ]);
    expect(withFound(once, [FOUND], 'def5678')).toEqual(once);
  });
});
