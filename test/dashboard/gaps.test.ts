import { describe, expect, it } from 'vitest';
import {
  type Explanation,
  explain,
  type Gap,
  gapsOf,
  lengthOf,
} from '../../dashboard/src/data/gaps.ts';
import { Story } from '../../dashboard/src/data/story.ts';
import { heirsOf } from '../../dashboard/src/views/member/story.ts';
import type { ApiEvent } from '../../src/client/messages.ts';
import { readGap } from '../../src/core/gap.ts';
import { exactly } from '../../src/core/time-text.ts';
import { sentenceOf } from '../../src/telemetry/sentences.ts';
import {
  ANA,
  BOB,
  CARL,
  entry,
  FAILOVER,
  FREEZE,
  HANDOVER,
  lease,
  taken,
} from '../support/log-entries.ts';

const words = {
  name: (instance: string) => instance.split('-')[0] ?? instance,
  time: (at: number) => `at ${at}`,
};

function gapsIn(entries: readonly ApiEvent[]) {
  const story = new Story();
  story.add(entries);
  return gapsOf('t', story.tenures('t'), story.marksOf('t'));
}

function explained(entries: readonly ApiEvent[]): Explanation {
  const story = new Story();
  story.add(entries);
  const [gap] = gapsOf('t', story.tenures('t'), story.marksOf('t'));
  if (gap === undefined) throw new Error('there is no gap');
  return explain(gap, story.marks(), words);
}

describe('gaps', () => {
  it.each([
    ['death', FAILOVER],
    ['freeze', FREEZE],
  ])('B-08 after a %s: from the last renewal until it was granted', (_, entries) => {
    expect(gapsIn(entries)).toMatchObject([
      { kind: 'failover', from: 10_000, until: 40_020, lengthMs: 30_020 },
    ]);
  });

  it('a handover that took no time is a handover', () => {
    const entries = [
      ...HANDOVER.slice(0, 2),
      taken(9_000, BOB, 102, { from: ANA, how: 'handover' }),
    ];
    expect(gapsIn(entries)).toMatchObject([{ kind: 'handover', from: 9_000, until: 9_000 }]);
  });

  it('one that is not over has no end', () => {
    const entries = [
      lease('acquired', 1_000, ANA, 100),
      entry('member.left', 7_000, BOB, { member: ANA, reason: 'expired' }),
    ];
    expect(gapsIn(entries)).toMatchObject([{ kind: 'failover', from: 7_000, until: null }]);
  });

  it('a target that was paused has no gap for which anybody is to blame', () => {
    const entries = [
      lease('acquired', 1_000, ANA, 100),
      entry('session.paused', 2_000, CARL, { session: 't' }),
      lease('released', 2_100, ANA, 100, { heldForMs: 1_100 }),
      entry('session.resumed', 60_000, CARL, { session: 't' }),
      taken(60_200, BOB, 101, { from: ANA, how: 'handover', wakeMs: 58_100 }),
    ];
    expect(gapsIn(entries)).toMatchObject([{ kind: 'paused', from: 2_100, until: 60_200 }]);
  });

  it('two tenures of which nothing more is known: the log does not say', () => {
    const entries = [lease('acquired', 1_000, ANA, 100), lease('acquired', 5_000, BOB, 101)];
    expect(gapsIn(entries)).toMatchObject([{ kind: 'unsaid', from: 5_000, until: 5_000 }]);
  });
});

describe('explaining a gap', () => {
  it('gives the arithmetic: last renewal + TTL, wake-up, grant', () => {
    const { title, steps, sum, stretches } = explained(FAILOVER);
    expect(title).toBe('No owner worked on t for 30.02 s');
    expect(steps).toEqual([
      'ana renewed its lease for the last time at at 10000. A lease lasts 30 s (TTL) without a renewal, so it expired at at 40000.',
      'bob woke up and asked for it 12 ms after that.',
      'The store granted it to bob 8 ms later, at at 40020.',
    ]);
    expect(sum).toBe('30 s TTL + 12 ms wake-up + 8 ms grant = 30.02 s since the last renewal');
    expect(stretches).toEqual([
      { name: 'TTL', fromMs: 10_000, lengthMs: 30_000, isOwned: true },
      { name: 'wake-up', fromMs: 40_000, lengthMs: 12, isOwned: false },
      { name: 'grant', fromMs: 40_012, lengthMs: 8, isOwned: false },
    ]);
  });

  it('says who died, and that the store was away or in quarantine meanwhile', () => {
    const { steps } = explained([
      ...FAILOVER,
      entry('member.left', 39_000, BOB, { member: ANA, reason: 'expired' }),
      entry('fleet.stalled', 39_500, CARL, { error: 'no answer' }),
      entry('fleet.resumed', 41_000, CARL, { afterMs: 1_500 }),
      entry('store.quarantined', 39_900, BOB, { store: 's', keyspace: 'poll', leftMs: 100 }),
    ]);
    expect(steps[0]).toContain('ana gave no sign of life');
    expect(steps).toContainEqual('carl could not reach the store from at 39500 until at 41000.');
    expect(steps.at(-1)).toContain('quarantine');
  });

  it('a handover: what happened instead, and that nobody else could have had it', () => {
    const { title, steps, sum, stretches } = explained([
      ...HANDOVER,
      entry('member.draining', 8_000, ANA, { member: ANA }),
    ]);
    expect(title).toBe('t moved from ana to bob');
    expect(steps[0]).toContain('ana was draining since at 8000');
    expect(steps[1]).toContain('no other instance could take it');
    expect([sum, stretches]).toEqual([null, null]);
  });

  it('a handover that an operator ordered says who did, and why', () => {
    const facts = { action: 'target.transfer', subject: 't', by: 'tok-1', reason: 'rack 2' };
    const { steps } = explained([...HANDOVER, entry('operator.acted', 8_500, CARL, facts)]);
    expect(steps[0]).toBe('tok-1 ordered target.transfer at at 8500 (rack 2).');
  });

  it('a revocation: whose, why, and how long the old holder could still act', () => {
    const { steps, sum, stretches } = explained([
      lease('acquired', 1_000, ANA, 100),
      {
        ...lease('revoked', 2_000, ANA, 100, { reason: 'hangs', mayActForMs: 5_000 }),
        instance: CARL,
      },
      taken(7_010, BOB, 101, { from: ANA, how: 'failover', wakeMs: 5_010 }),
    ]);
    expect(steps[0]).toContain(
      'An operator revoked it from ana at at 2000 (hangs). ana could still act for 5 s',
    );
    expect([sum, stretches]).toEqual([null, null]);
  });

  it('says what the log does not say, and makes nothing up', () => {
    const entries = [lease('acquired', 1_000, ANA, 100), lease('acquired', 5_000, BOB, 101)];
    const { sum, stretches, unsaid } = explained(entries);
    expect([sum, stretches]).toEqual([null, null]);
    expect(unsaid).toHaveLength(2);
    expect(unsaid[0]).toContain('no target.taken entry of bob');
  });

  it('B-08 a freeze is explained as a freeze, and nothing is said of clocks', () => {
    const { title, steps, sum, unsaid } = explained(FREEZE);
    expect(title).toBe('No owner worked on t for 30.02 s');
    expect(sum).toBe('30 s TTL + 12 ms wake-up + 8 ms grant = 30.02 s since the last renewal');
    expect(steps[0]).toBe(
      'ana did not run for a while: its process was frozen, asleep or blocked. Its deadline was at at 38500; it noticed at at 43629, 5.129 s late.',
    );
    expect(unsaid.join(' ')).not.toMatch(/clocks (of the two )?differ/);
  });

  it('B-08 the map, the timeline, its table, a member and the terminal name the same gap', () => {
    const [gap] = gapsIn(FREEZE);
    const takings = FREEZE.filter(({ event }) => event === 'target.taken');
    const lengths = [
      lengthOf(gap as Gap, 99_000),
      heirsOf(ANA, takings).gapMs,
      ...takings.map((taking) => readGap(taking).gapMs),
    ];
    expect(new Set(lengths)).toEqual(new Set([30_020]));
    const [taking] = takings;
    const inWords = sentenceOf('target.taken', { ...taking });
    expect(inWords).toBe('took t after a gap of 30.02 s, from ana-aaaaaaaa');
  });

  it('says that times contradict fences where they do, and claims no difference of clocks that nobody has measured', () => {
    const entries = [
      lease('acquired', 10_000, ANA, 100),
      lease('transferred', 20_000, ANA, 100, { successor: BOB, heldForMs: 10_000 }),
      taken(15_000, BOB, 101, { from: ANA, how: 'handover' }),
    ];
    expect(explained(entries).unsaid[0]).toBe(
      'By the times in the log, bob had it 5 s before ana had ended. By their fences, bob came second. Either ana logged its end late, or their clocks differ: Holdfast has not measured that.',
    );
  });

  it('an instance that has again what it had lost', () => {
    const entries = [
      lease('acquired', 1_000, ANA, 100),
      lease('lost', 20_000, ANA, 100, { reason: 'expired', heldForMs: 19_000 }),
      taken(22_000, ANA, 101, { from: ANA, how: 'failover', wakeMs: 1_900, grantMs: 100 }),
    ];
    const { title, steps, sum } = explained(entries);
    expect(title).toBe('No owner worked on t for 2 s');
    expect(steps[0]).toContain('ana stopped at at 20000');
    expect(sum).toBe('1.9 s wake-up + 100 ms grant = 2 s');
  });

  it.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1_840, '1.84 s'],
    [30_020, '30.02 s'],
    [125_500, '2 min 5.5 s'],
    [7_200_000, '2 h 0 min'],
  ])('%d ms are %s', (ms, text) => {
    expect(exactly(ms)).toBe(text);
  });
});
