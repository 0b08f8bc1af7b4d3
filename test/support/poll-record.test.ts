import { describe, expect, it } from 'vitest';
import {
  fenceRegressions,
  firstPolls,
  gaps,
  imbalance,
  isLate,
  moves,
  overlaps,
  type Poll,
} from './poll-record.ts';

/** `poll('t', 'a', 100, 120)`: a poll of t by a, from 100 to 120 ms; arrives at once unless told otherwise. */
function poll(
  target: string,
  instance: string,
  startMs: number,
  endMs: number,
  more: Partial<Poll> = {},
): Poll {
  return { target, instance, fence: 1, startMs, arrivedMs: startMs, endMs, ...more };
}

describe('overlaps', () => {
  it('are polls of one target by two instances at the same time', () => {
    const first = poll('t', 'a', 0, 100);
    const second = poll('t', 'b', 90, 190);
    // In whatever order they were recorded.
    expect(overlaps([second, first])).toEqual([{ target: 't', first, second, forMs: 10 }]);
  });

  it('are found behind a shorter poll of the same instance', () => {
    const long = poll('t', 'a', 0, 1_000);
    const found = overlaps([long, poll('t', 'a', 10, 20), poll('t', 'b', 500, 510)]);
    expect(found).toMatchObject([{ first: long, forMs: 10 }]);
  });

  it('are found with a poll that has not ended', () => {
    const hung = poll('t', 'a', 0, Number.POSITIVE_INFINITY);
    expect(overlaps([hung, poll('t', 'b', 500, 510)])).toHaveLength(1);
  });

  it('are found for each of three who poll at once', () => {
    const polls = ['a', 'b', 'c'].map((instance) => poll('t', instance, 0, 10));
    expect(overlaps(polls)).toHaveLength(3);
  });

  it('are none where polls follow each other, are of other targets, or are of one instance', () => {
    expect(
      overlaps([
        poll('t', 'a', 0, 100),
        poll('t', 'b', 100, 200),
        poll('u', 'c', 0, 200),
        poll('v', 'a', 0, 100),
        poll('v', 'a', 50, 150),
      ]),
    ).toEqual([]);
  });
});

describe('gaps', () => {
  const window = { fromMs: 0, toMs: 1_000, targets: ['t'], boundMs: 300 };

  it('are times without a poll beyond the bound, between polls and at either edge', () => {
    expect(gaps([poll('t', 'a', 301, 302), poll('t', 'a', 650, 660)], window)).toEqual([
      { target: 't', fromMs: 0, lastedMs: 301 },
      { target: 't', fromMs: 302, lastedMs: 348 },
      { target: 't', fromMs: 660, lastedMs: 340 },
    ]);
  });

  it('are found where a target was never polled', () => {
    expect(gaps([poll('u', 'a', 0, 1_000)], window)).toEqual([
      { target: 't', fromMs: 0, lastedMs: 1_000 },
    ]);
  });

  it('are not in a long poll, nor outside of the time in question', () => {
    const long = poll('t', 'a', -500, 700);
    expect(gaps([poll('t', 'a', -900, -800), long, poll('t', 'b', 2_000, 2_001)], window)).toEqual(
      [],
    );
    expect(gaps([poll('t', 'a', 0, Number.POSITIVE_INFINITY)], window)).toEqual([]);
  });
});

describe('fence regressions', () => {
  it('are polls that arrive with a lower fence than the target has seen', () => {
    const late = poll('t', 'a', 0, 30, { fence: 5, arrivedMs: 20 });
    const polls = [late, poll('t', 'b', 10, 15, { fence: 6 }), poll('u', 'b', 30, 40)];
    expect(fenceRegressions(polls)).toEqual([{ target: 't', seen: 6, poll: late }]);
  });

  it('are none where fences rise or stay, or there are none', () => {
    const fences = [5, 5, null, 6, null, 6, 9];
    const polls = fences.map((fence, i) => poll('t', 'a', i * 10, i * 10 + 5, { fence }));
    expect(fenceRegressions(polls)).toEqual([]);
  });
});

describe('imbalance', () => {
  const owners = (...names: (string | null)[]) =>
    new Map(names.map((name, i) => [`t${i}`, name] as const));
  const members = (...ids: string[]) => ids.map((id) => ({ id, weight: 1 }));

  it('is more than the ceiling or less than the floor of a share', () => {
    expect(imbalance(owners('a', 'a', 'a', 'b'), members('a', 'b'))).toEqual([
      { member: 'a', owned: 3, least: 2, most: 2 },
      { member: 'b', owned: 1, least: 2, most: 2 },
    ]);
    expect(imbalance(owners('a', 'b', 'c'), members('a', 'b', 'c', 'd'))).toEqual([]);
    expect(imbalance(owners('a', 'a', 'c'), members('a', 'b', 'c', 'd'))).toMatchObject([
      { member: 'a', owned: 2, most: 1 },
    ]);
  });

  it('is a target that nobody owns, or somebody who is not a member', () => {
    expect(imbalance(owners('a', null), members('a'))).toContainEqual({
      ...{ member: null, owned: 1, least: 0, most: 0 },
    });
    expect(imbalance(owners('a', 'dead'), members('a'))).toMatchObject([
      { member: 'a', owned: 1, least: 2 },
      { member: 'dead', owned: 1, most: 0 },
    ]);
  });

  it('follows the weights', () => {
    const weighted = [
      { id: 'a', weight: 2 },
      { id: 'b', weight: 1 },
    ];
    expect(imbalance(owners('a', 'a', 'b'), weighted)).toEqual([]);
    expect(imbalance(owners('a', 'b', 'b'), weighted)).toHaveLength(2);
  });
});

describe('a poll that straddles a standstill of its process', () => {
  const standstill = { instance: 'a', fromMs: 100, toMs: 200 };

  it('is late; one sent before or begun after is not, nor is another process', () => {
    const sent = (instance: string, startMs: number, arrivedMs: number) =>
      isLate(poll('t', instance, startMs, arrivedMs + 1, { arrivedMs }), [standstill]);
    expect(sent('a', 99, 201)).toBe(true);
    expect(sent('a', 98, 99)).toBe(false);
    expect(sent('a', 201, 202)).toBe(false);
    expect(sent('b', 99, 201)).toBe(false);
  });
});

describe('first polls', () => {
  it('are the first of each target from a moment on, by somebody else', () => {
    const polls = [
      poll('t', 'b', 50, 60),
      poll('t', 'a', 100, 110),
      poll('t', 'c', 130, 140),
      poll('t', 'b', 120, 125),
    ];
    expect(firstPolls(polls, { fromMs: 100, except: 'a' })).toEqual(new Map([['t', polls[3]]]));
    expect(firstPolls(polls, { fromMs: 100 }).get('t')?.instance).toBe('a');
    expect(firstPolls(polls, { fromMs: 200 }).size).toBe(0);
  });
});

describe('moves', () => {
  it('are changes of the one who polls a target, in the order of the polls', () => {
    const polls = [
      poll('t', 'b', 100, 110),
      poll('t', 'a', 0, 10),
      poll('t', 'b', 200, 210),
      poll('t', 'a', 300, 310),
      poll('u', 'a', 150, 160),
    ];
    expect(moves(polls)).toBe(2);
  });
});
