import { describe, expect, it } from 'vitest';
import { check } from '../../chaos/checker.ts';
import { commitsOf } from '../../chaos/commit-order.ts';
import { countsOf } from '../../chaos/counts.ts';
import type { Entry } from '../../chaos/history.ts';
import { RECOVERY_MS } from '../../chaos/timings.ts';

const T = 'target-1';

/** A history by hand: times in ms from its beginning, in any order. */
class Tale {
  readonly #entries: Entry[] = [];

  tell(atMs: number, who: string, what: string, facts: Record<string, unknown> = {}): this {
    this.#entries.push({ atMs, who, what, ...facts });
    return this;
  }

  /** Granted, and valid to that moment unless something happens. */
  granted(atMs: number, who: string, fence: number, deadlineMs: number | null): this {
    return this.tell(atMs, who, 'lease.acquired', { target: T, fence, deadlineMs });
  }

  /** A whole poll, whose write the sink accepts, or refuses. */
  polled(atMs: number, who: string, fence: number, fate = 'sink.accepted'): this {
    const about = { target: T, fence, poll: atMs };
    return this.tell(atMs, who, 'poll.began', about)
      .tell(atMs + 40, who, 'poll.acted', about)
      .tell(atMs + 42, 'sink', fate, { ...about, by: who })
      .tell(atMs + 44, who, 'poll.ended', about);
  }

  /** As a target server saw it; its process had begun at `startMs`. */
  seen(startMs: number, arrivedMs: number, instance: string, fence: number): this {
    const facts = { target: T, instance, fence, startMs, arrivedMs, endMs: arrivedMs + 50 };
    return this.tell(arrivedMs, 'target server', 'target.polled', facts);
  }

  /** Polled every quarter of a second. */
  polledFrom(fromMs: number, toMs: number, who: string, fence: number): this {
    for (let atMs = fromMs; atMs < toMs; atMs += 250) this.polled(atMs, who, fence);
    return this;
  }

  fault(fromMs: number, toMs: number, kind: string, facts: Record<string, unknown> = {}): this {
    const fault = this.#entries.length;
    const about = { fault, kind, victim: 'a', recoveryMs: RECOVERY_MS.plain, mayBreak: [] };
    return this.tell(fromMs, 'nemesis', 'fault.began', { ...about, ...facts }).tell(
      toMs,
      'nemesis',
      'fault.ended',
      { fault, kind },
    );
  }

  /** The run itself, which gives the time in which gaps count. */
  run(fromMs: number, toMs: number): this {
    return this.tell(fromMs, 'harness', 'run.began', { targets: [T] }).tell(
      toMs,
      'harness',
      'run.ended',
    );
  }

  get history(): Entry[] {
    return [...this.#entries].sort((a, b) => a.atMs - b.atMs);
  }

  get found(): string[] {
    return check(this.history).violations.map(({ invariant }) => invariant);
  }
}

describe('a history in which nothing is wrong', () => {
  it('of one instance after the other passes', () => {
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .polled(100, 'a', 10)
      .tell(1_000, 'a', 'lease.extended', { target: T, fence: 10, deadlineMs: 3_840 })
      .polled(3_000, 'a', 10)
      .tell(3_840, 'a', 'lease.lost', { target: T, fence: 10, reason: 'expired' })
      .granted(4_000, 'b', 11, 6_850)
      .polled(4_100, 'b', 11);
    expect(tale.found).toEqual([]);
  });

  it('may have a handover as soon as the poll under way has ended', () => {
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .polled(100, 'a', 10)
      .tell(110, 'a', 'lease.releasing', { target: T, fence: 10 })
      .granted(145, 'b', 11, 2_995)
      .polled(146, 'b', 11);
    expect(tale.found).toEqual([]);
  });

  it('may have a poll that was begun before its process stood still, and whose late write was refused', () => {
    const about = { target: T, fence: 10, poll: 1 };
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .tell(100, 'a', 'poll.began', about)
      .tell(140, 'a', 'poll.acted', about)
      .granted(3_200, 'b', 11, 6_050)
      .polled(3_300, 'b', 11)
      .polled(5_990, 'b', 11)
      .tell(6_000, 'sink', 'sink.refused', { ...about, by: 'a' })
      .tell(6_001, 'a', 'poll.ended', about)
      .tell(6_002, 'a', 'stood.still', { fromMs: 141 });
    expect(tale.found).toEqual([]);
  });

  it('may have a gap that a fault explains', () => {
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .polled(100, 'a', 10)
      .fault(200, 210, 'kill')
      .granted(3_200, 'b', 11, 9_000)
      .polledFrom(3_300, 5_000, 'b', 11)
      .run(50, 5_000);
    expect(tale.found).toEqual([]);
  });
});

describe('what is found', () => {
  it('G18 two instances at one target server at once, unless the process of one stood still', () => {
    const apart = new Tale().seen(0, 1, 'a', 10).seen(51, 52, 'b', 11);
    expect(apart.found).toEqual([]);
    const both = new Tale().seen(0, 1, 'a', 10).seen(40, 41, 'b', 11);
    expect(both.found).toEqual(['overlap at target']);
    const late = new Tale()
      .seen(100, 5_000, 'a', 10)
      .seen(4_990, 4_991, 'b', 11)
      .tell(4_999, 'a', 'stood.still', { fromMs: 101 });
    expect(late.found).toEqual([]);
  });

  it('an overlap at a target server is permitted where two polls are', () => {
    const split = new Tale()
      .fault(0, 20, 'split primary', { mayBreak: ['two polls'] })
      .seen(0, 1, 'a', 10)
      .seen(40, 41, 'b', 11);
    expect(check(split.history).permitted.map(({ invariant }) => invariant)).toEqual([
      'overlap at target',
    ]);
    expect(split.found).toEqual([]);
  });

  it('two instances that are valid at once, also where neither polls', () => {
    const tale = new Tale().granted(0, 'a', 10, 2_850).granted(2_800, 'b', 11, 5_650);
    expect(tale.found).toEqual(['exclusion']);
    expect(check(tale.history).violations[0]).toMatchObject({ atMs: 2_800, untilMs: 2_850 });
  });

  it('a handover before the poll under way has ended', () => {
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .polled(100, 'a', 10)
      .tell(110, 'a', 'lease.releasing', { target: T, fence: 10 })
      .granted(140, 'b', 11, 2_990);
    expect(tale.found).toEqual(['exclusion']);
  });

  it('an instance without deadlines that continues after another was granted its target', () => {
    const stops = new Tale()
      .granted(0, 'a', 1, null)
      .polled(100, 'a', 1)
      .granted(3_000, 'b', 2, null)
      .polled(3_300, 'b', 2);
    expect(stops.found).toEqual([]);
    stops.polled(3_100, 'a', 1);
    expect(stops.found).toEqual(['exclusion']);
  });

  it('a write that was checked after the deadline', () => {
    const about = { target: T, fence: 10, poll: 1 };
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .tell(2_840, 'a', 'poll.began', about)
      .tell(2_851, 'a', 'poll.acted', about)
      .tell(2_852, 'a', 'poll.ended', about);
    expect(tale.found).toEqual(['act outside tenure']);
  });

  it('a poll that began after its tenure, or without any', () => {
    const about = { target: T, fence: 10, poll: 1 };
    const late = new Tale().granted(0, 'a', 10, 2_850).tell(3_000, 'a', 'poll.began', about);
    expect(late.found).toEqual(['poll outside tenure']);
    late.tell(3_010, 'a', 'stood.still', { fromMs: 2_800 });
    expect(late.found).toEqual([]);
    const stray = new Tale().tell(5, 'a', 'poll.began', about);
    expect(stray.found).toEqual(['poll outside tenure']);
  });

  it('a poll that began after its instance had begun to let go', () => {
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .tell(100, 'a', 'lease.releasing', { target: T, fence: 10 })
      .tell(300, 'a', 'poll.began', { target: T, fence: 10, poll: 1 });
    expect(tale.found).toEqual(['poll outside tenure']);
  });

  it('two polls at once, of two instances and of one', () => {
    const two = new Tale()
      .granted(0, 'a', 10, 120)
      .granted(130, 'b', 11, 2_980)
      .tell(100, 'a', 'poll.began', { target: T, fence: 10, poll: 1 })
      .polled(140, 'b', 11)
      .tell(150, 'a', 'poll.ended', { target: T, fence: 10, poll: 1 });
    expect(two.found).toEqual(['two polls']);
    const one = new Tale().granted(0, 'a', 10, 2_850).polled(100, 'a', 10).polled(120, 'a', 10);
    expect(one.found).toEqual(['two polls']);
  });

  it('a grant with a lower fence than an earlier one, also of the same instance', () => {
    const tale = new Tale().granted(0, 'a', 10, 100).granted(200, 'a', 9, 300);
    expect(tale.found).toEqual(['fence order']);
  });

  it('a fence that two tenures have', () => {
    const granted = new Tale().granted(0, 'a', 10, 100).granted(200, 'b', 10, 300);
    expect(granted.found).toEqual(['fence shared']);
    const written = new Tale()
      .tell(1, 'sink', 'sink.accepted', { target: T, fence: 10, by: 'a' })
      .tell(2, 'sink', 'sink.accepted', { target: T, fence: 10, by: 'b' });
    expect(written.found).toEqual(['fence shared']);
  });

  it('a sink that accepts an older fence', () => {
    const tale = new Tale()
      .tell(1, 'sink', 'sink.accepted', { target: T, fence: 11, by: 'b' })
      .tell(2, 'sink', 'sink.accepted', { target: T, fence: 10, by: 'a' });
    expect(tale.found).toEqual(['sink went back']);
  });

  it('a gap that no fault explains, and one that lasts longer than its fault does', () => {
    const quiet = new Tale()
      .granted(0, 'a', 10, 20_000)
      .polled(100, 'a', 10)
      .polled(3_000, 'a', 10);
    expect(quiet.run(50, 3_100).found).toEqual(['gap']);
    const late = RECOVERY_MS.plain + 1_000;
    const slow = new Tale()
      .granted(0, 'a', 10, 20_000)
      .polled(100, 'a', 10)
      .fault(200, 210, 'kill')
      .polled(late, 'a', 10);
    expect(slow.run(50, late + 50).found).toEqual(['gap']);
  });

  it('a gap is not held against anybody where the machine itself stood still', () => {
    const tale = new Tale().granted(0, 'a', 10, 20_000).polled(100, 'a', 10).polled(3_000, 'a', 10);
    tale.run(50, 3_100).tell(2_900, 'harness', 'stood.still', { fromMs: 150 });
    expect(tale.found).toEqual([]);
  });

  it('a target that nobody polls after the last fault', () => {
    const endMs = 1_000 + RECOVERY_MS.forgotten + 10;
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .polled(100, 'a', 10)
      .fault(200, 1_000, 'Redis killed', { recoveryMs: RECOVERY_MS.forgotten })
      .tell(1_000, 'nemesis', 'nemesis.rested')
      .run(50, endMs);
    expect(tale.found.sort()).toEqual(['gap', 'no recovery']);
  });

  it('a process that ends by itself, or leaves a rejection unhandled', () => {
    const tale = new Tale()
      .tell(1, 'a', 'unhandled', { error: 'Error: oops' })
      .tell(2, 'harness', 'instance.crashed', { instance: 'a', error: '1' });
    expect(tale.found).toEqual(['crash', 'crash']);
  });
});

describe('what a fault may break', () => {
  const overlap = () => new Tale().granted(0, 'a', 10, 2_850).granted(2_000, 'b', 11, 4_850);

  it('is permitted around it, and counted apart', () => {
    const tale = overlap().fault(1_000, 1_500, 'primary isolated', { mayBreak: ['exclusion'] });
    expect(tale.found).toEqual([]);
    expect(check(tale.history).permitted).toMatchObject([{ invariant: 'exclusion' }]);
  });

  it('is no excuse long after it, nor for anything else', () => {
    const facts = { mayBreak: ['exclusion'] };
    expect(overlap().fault(-20_000, -19_000, 'primary isolated', facts).found).toEqual([
      'exclusion',
    ]);
    const fence = new Tale().granted(0, 'a', 10, 100).granted(200, 'b', 9, 300);
    expect(fence.fault(0, 250, 'primary isolated', facts).found).toEqual(['fence order']);
  });
});

describe('the counts of a run', () => {
  it('have every kind of fault there is, and what the run came to', () => {
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .polled(100, 'a', 10)
      .fault(200, 210, 'kill')
      .granted(3_200, 'b', 11, 9_000)
      .polled(3_300, 'b', 11)
      .tell(3_400, 'sink', 'sink.refused', { target: T, fence: 10, by: 'a' })
      .run(50, 3_500);
    expect(countsOf(tale.history, ['kill', 'freeze'])).toMatchObject({
      faults: { kill: 1, freeze: 0 },
      states: {
        'lease granted': 2,
        'taken over after a kill': 1,
        'write fenced off by the sink': 1,
      },
      ...{ polls: 2, writes: 2, gaps: 1, longestGapMs: 3_156 },
    });
  });
});

describe('what is found on PostgreSQL', () => {
  const commit = (order: number, what: string, fence: number) =>
    ({ target: T, fence, by: 'a', order, what: `commit.${what}` }) as const;
  const committed = (...commits: readonly ReturnType<typeof commit>[]) => {
    const tale = new Tale();
    for (const { what, ...facts } of commits) tale.tell(100, 'database', what, facts);
    return tale.found;
  };

  it('B-22 a guarded transaction that committed after a higher fence was granted, by the order of commits', () => {
    const [first, second] = [commit(0, 'grant', 10), commit(2, 'grant', 11)];
    expect(committed(first, commit(1, 'write', 10), second)).toEqual([]);
    expect(committed(first, second, commit(3, 'write', 10))).toEqual(['stale commit']);
    expect(committed(commit(3, 'write', 10), second, first)).toEqual(['stale commit']);
  });

  it('B-24 a promotion without a quarantine, and a quarantine without a loss', () => {
    const changed = (facts: Record<string, unknown>) =>
      new Tale().tell(0, 'nemesis', 'timeline.changed', { from: '1', to: '2', ...facts }).found;
    expect(changed({ isNewEra: true, mustQuarantine: true })).toEqual([]);
    expect(changed({ isNewEra: false, mustQuarantine: true })).toEqual(['no quarantine']);
    const forgot = (neverForgets: boolean) =>
      new Tale()
        .tell(0, 'harness', 'run.began', { targets: [], neverForgets })
        .tell(1, 'a', 'store.forgot', { why: 'restarted' }).found;
    expect(forgot(false)).toEqual([]);
    expect(forgot(true)).toEqual(['needless quarantine']);
  });

  it('B-22 lines of test_decoding are read as grants and writes, and renewals as neither', () => {
    const lease = (fence: number) =>
      `key[text]:'poll:lease:${T}' holder[text]:'a' fence[bigint]:${fence} until[bigint]:7`;
    const commits = commitsOf([
      `table holdfast.lease: INSERT: ${lease(10)}`,
      'COMMIT 1 (at 2026-11-18 16:00:00.5+00)',
      `table holdfast.lease: UPDATE: ${lease(10)}`,
      'COMMIT 2 (at 2026-11-18 16:00:01+00)',
      `table public.chaos_write: INSERT: n[bigint]:1 target[text]:'${T}' fence[bigint]:10 by[text]:'a'`,
      `table holdfast.lease: UPDATE: old-key: key[text]:'poll:lease:${T}' fence[bigint]:10 new-tuple: ${lease(11)}`,
      'COMMIT 3 (at 2026-11-18 16:00:02+00)',
    ]);
    expect(commits.map(({ what, fence, order }) => [what, fence, order])).toEqual([
      ['commit.grant', 10, 0],
      ['commit.write', 10, 1],
      ['commit.grant', 11, 2],
    ]);
  });
});

describe('what `holdfast verify` says of a history', () => {
  it('B-29 is said of a write that the sink accepted long after the tenure', () => {
    const about = { target: T, fence: 10, poll: 1, by: 'a' };
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .tell(1_000, 'a', 'lease.released', { target: T, fence: 10, heldForMs: 1_000 })
      .tell(2_000, 'sink', 'sink.accepted', about);
    expect(tale.found).toEqual(['verify']);
    tale.tell(2_010, 'a', 'stood.still', { fromMs: 900 });
    expect(tale.found).toEqual([]);
  });

  it('B-29 is not said again of what the checker has found', () => {
    const tale = new Tale()
      .granted(0, 'a', 10, 2_850)
      .granted(1_000, 'b', 11, 3_850)
      .tell(2_000, 'a', 'lease.released', { target: T, fence: 10, heldForMs: 2_000 });
    expect(tale.found).toEqual(['exclusion']);
  });
});
