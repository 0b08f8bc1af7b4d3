import { describe, expect, it } from 'vitest';
import { UsageError } from '../../chaos/arguments.ts';
import { readSoakArguments } from '../../chaos/soak-arguments.ts';
import { type Belief, judgeBeliefs } from '../../chaos/soak-judge.ts';

const belief = (by: string, fence: number, from: number, until: number): Belief => {
  return { key: 'k', by, holder: by, fence, from, until };
};
const kinds = (...beliefs: Belief[]) => judgeBeliefs(beliefs).map(({ kind }) => kind);

describe('the judge of a soak', () => {
  it('K-01 finds two processes that believed in one key at one moment', () => {
    expect(kinds(belief('a', 1, 0, 100), belief('b', 2, 99, 200))).toEqual(['two believers']);
    expect(kinds(belief('a', 1, 0, 100), belief('b', 2, 100, 200))).toEqual([]);
    const other = { ...belief('b', 2, 50, 200), key: 'other' };
    expect(kinds(belief('a', 1, 0, 100), other)).toEqual([]);
  });

  it('K-01 finds a short belief within a long one that began much earlier', () => {
    const long = belief('a', 1, 0, 1_000);
    expect(kinds(long, belief('b', 2, 10, 20), belief('c', 3, 500, 600))).toEqual([
      'two believers',
      'two believers',
    ]);
  });

  it('takes several times of one lease for one believer', () => {
    expect(kinds(belief('a', 1, 0, 100), belief('a', 1, 50, 200))).toEqual([]);
  });

  it('K-02 finds a fence that was granted twice, and one that did not grow', () => {
    expect(kinds(belief('a', 7, 0, 100), belief('b', 7, 200, 300))).toEqual([
      'fence granted twice',
    ]);
    expect(kinds(belief('a', 7, 0, 100), belief('b', 6, 200, 300))).toEqual(['fence did not grow']);
    expect(kinds(belief('a', 7, 0, 100), belief('b', 8, 200, 300))).toEqual([]);
  });
});

describe('the arguments of a soak', () => {
  it.each([['--store', 'mysql'], ['--seconds', '0'], ['--naive', '--store', 'sqlite'], ['--what']])(
    'refuses wrong use: %s %s',
    (...args) => {
      expect(() => readSoakArguments(args)).toThrow(UsageError);
    },
  );

  it('is a minute on Redis without any', () => {
    expect(readSoakArguments([])).toMatchObject({ store: 'redis', seconds: 60, isNaive: false });
    expect(readSoakArguments(['--help'])).toBeNull();
  });
});
