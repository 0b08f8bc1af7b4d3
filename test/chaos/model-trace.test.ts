import { describe, expect, it } from 'vitest';
import type { Entry } from '../../chaos/history.ts';
import { modelRefusals } from '../../chaos/model-trace.ts';

const lease = (atMs: number, who: string, what: string, facts: object): Entry => {
  return { atMs, who, what, target: 'target-1', ...facts };
};
const began = (isSharded: boolean): Entry => {
  return { atMs: 0, who: 'harness', what: 'run.began', isSharded };
};
const forgot = { atMs: 1_000, who: 'b', what: 'store.forgot' };
const rules = (history: readonly Entry[]) => modelRefusals(history).map(({ rule }) => rule);

describe('a store that has forgotten', () => {
  it('K-05 may grant a key that its holder hands over before it has been granted again', () => {
    const history = [
      lease(100, 'a', 'lease.acquired', { fence: 10, deadlineMs: 2_950 }),
      forgot,
      lease(1_100, 'a', 'lease.extended', { fence: 10, deadlineMs: 3_950 }),
      lease(3_000, 'a', 'lease.releasing', { fence: 10 }),
      lease(3_001, 'a', 'lease.transferred', { fence: 10, successor: 'b' }),
      lease(3_002, 'b', 'lease.acquired', { fence: 11, deadlineMs: 5_850 }),
    ];
    expect(rules(history)).toEqual([]);
    expect(rules(history.filter(({ what }) => what !== 'lease.releasing'))).toEqual([
      'grant',
      'believe',
    ]);
  });

  it('K-05 grants nothing new for a while, and the servers of a Cluster that have not forgotten do', () => {
    const granted = lease(2_000, 'a', 'lease.acquired', { fence: 10, deadlineMs: 4_850 });
    expect(rules([began(false), forgot, granted])).toEqual(['quarantine']);
    expect(rules([began(true), forgot, granted])).toEqual([]);
  });
});
