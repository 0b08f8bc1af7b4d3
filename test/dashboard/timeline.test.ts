import { describe, expect, it } from 'vitest';
import { gapsOf } from '../../dashboard/src/data/gaps.ts';
import { Story } from '../../dashboard/src/data/story.ts';
import { piecesOf, placeOf } from '../../dashboard/src/views/timeline/lane.ts';
import {
  around,
  endsOf,
  panned,
  queryOf,
  spanOfQuery,
  ticks,
  zoomed,
} from '../../dashboard/src/views/timeline/span.ts';
import { BOB, FAILOVER, lease } from '../support/log-entries.ts';

const NOW = 1_000_000;

describe('the window of a timeline', () => {
  it('follows the present until the user moves it back', () => {
    const span = { lengthMs: 60_000, until: null };
    expect(endsOf(span, NOW)).toEqual({ from: 940_000, to: NOW });
    expect(panned(span, -0.5, NOW)).toEqual({ lengthMs: 60_000, until: 970_000 });
  });

  it('follows the present again when the user moves it there', () => {
    expect(panned({ lengthMs: 60_000, until: 990_000 }, 0.5, NOW).until).toBeNull();
  });

  it('zooming leaves what is under the pointer where it is', () => {
    const span = { lengthMs: 60_000, until: 500_000 };
    expect(zoomed(span, 0.5, 0.25, NOW)).toEqual({ lengthMs: 30_000, until: 477_500 });
  });

  it('has a shortest and a longest length', () => {
    const span = { lengthMs: 60_000, until: 500_000 };
    expect(zoomed(span, 1e-9, 0.5, NOW).lengthMs).toBe(200);
    expect(zoomed(span, 1e9, 0.5, NOW).lengthMs).toBe(86_400_000);
  });

  it('goes to a gap so that both sides of it are seen', () => {
    expect(around(500_000, 501_000, NOW)).toEqual({ lengthMs: 3_000, until: 502_000 });
  });

  it('is in the address, and nothing is where it is as usual', () => {
    const spans = [
      { lengthMs: 3_600_000, until: null },
      { lengthMs: 12_345, until: 500_000 },
      { lengthMs: 300_000, until: null },
    ];
    for (const span of spans) expect(spanOfQuery(new URLSearchParams(queryOf(span)))).toEqual(span);
    expect(queryOf({ lengthMs: 300_000, until: null })).toEqual({ for: '', until: '' });
  });

  it.each([['for=abc'], ['for=-1&until=x'], ['until=-5'], ['for=1e99']])(
    'makes sense of %s all the same',
    (search) => {
      const { lengthMs, until } = spanOfQuery(new URLSearchParams(search));
      expect(lengthMs).toBeGreaterThanOrEqual(200);
      expect(lengthMs).toBeLessThanOrEqual(86_400_000);
      expect(until).toBeNull();
    },
  );

  it('has ticks at round times of the reader', () => {
    const { stepMs, at } = ticks({ from: 61_000, to: 121_000 }, 7);
    expect(stepMs).toBe(10_000);
    expect(at).toEqual([70_000, 80_000, 90_000, 100_000, 110_000, 120_000]);
    expect(ticks({ from: 0, to: 7_200_000 }, 2, 1_800_000).at).toEqual([1_800_000, 5_400_000]);
  });
});

describe('what of a lane is drawn', () => {
  const story = new Story();
  story.add(FAILOVER);
  const tenures = story.tenures('t');
  const gaps = gapsOf('t', tenures, []);

  it('bars up to the last sign of life, and the gap from there', () => {
    const window = { from: 0, to: 100_000, now: 100_000 };
    expect(piecesOf(tenures, gaps, window, 0.01)).toMatchObject([
      { kind: 'tenure', left: 0.01, width: expect.closeTo(0.09), isOpenRight: false },
      { kind: 'tenure', left: 0.4002, width: expect.closeTo(0.5998), isOpenRight: true },
      { kind: 'gap', left: 0.1 },
    ]);
  });

  it('nothing that lies outside, and nothing beyond the present', () => {
    const window = { from: 50_000, to: 150_000, now: 100_000 };
    expect(piecesOf(tenures, gaps, window, 0.01)).toMatchObject([
      { kind: 'tenure', tenure: { holder: BOB }, left: 0, width: 0.5 },
    ]);
    expect(placeOf(0, 10, window)).toBeNull();
    expect(placeOf(120_000, 130_000, window)).toBeNull();
  });

  it('changes that lie too close together are a crowd, with its number', () => {
    const busy = new Story();
    busy.add(
      Array.from({ length: 20 }, (_, i) => lease('acquired', 10_000 + i * 10, BOB, 100 + i)),
    );
    const many = busy.tenures('t');
    const window = { from: 0, to: 100_000, now: 100_000 };
    const pieces = piecesOf(many, gapsOf('t', many, []), window, 0.01);
    const crowds = pieces.filter(({ kind }) => kind === 'crowd');
    expect(crowds).toMatchObject([{ gaps: { length: 19 } }]);
    expect(pieces.length).toBeLessThan(5);
  });
});
