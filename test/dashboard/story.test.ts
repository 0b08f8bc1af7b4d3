import { describe, expect, it } from 'vitest';
import { Story } from '../../dashboard/src/data/story.ts';
import { lifeOf, ownedOver } from '../../dashboard/src/views/timeline/owned.ts';
import { ANA, BOB, CARL, entry, FAILOVER, HANDOVER, lease } from '../support/log-entries.ts';

describe('a story of the log', () => {
  it('grows in both directions, and says whether something was new', () => {
    const story = new Story();
    expect(story.add(FAILOVER.slice(1))).toBe(true);
    expect(story.tenures('t').at(0)).toMatchObject({ holder: ANA, from: null });
    expect(story.add(FAILOVER.slice(0, 1))).toBe(true);
    expect(story.tenures('t').at(0)).toMatchObject({ holder: ANA, from: 1_000 });
    expect(story.add(FAILOVER)).toBe(false);
  });

  it('an entry that was written twice, at two positions, is one', () => {
    const story = new Story();
    const [first] = FAILOVER;
    if (first === undefined) throw new Error('there is one');
    story.add([first]);
    expect(story.add([{ ...first, position: 'another' }])).toBe(false);
  });

  it('a death that everybody writes down is one, at the first of their times', () => {
    const story = new Story();
    story.add([
      lease('acquired', 1_000, ANA, 100),
      entry('member.left', 7_300, CARL, { member: ANA, reason: 'expired' }),
      entry('member.left', 7_100, BOB, { member: ANA, reason: 'expired' }),
    ]);
    expect(story.marks()).toMatchObject([{ kind: 'crash', who: ANA, at: 7_100 }]);
    expect(story.tenures('t')).toMatchObject([{ ending: { kind: 'gone', at: 7_100 } }]);
  });

  it('the same instance may be seen dead again, much later', () => {
    const story = new Story();
    story.add([
      entry('member.left', 1_000, BOB, { member: ANA, reason: 'expired' }),
      entry('member.left', 900_000, BOB, { member: ANA, reason: 'expired' }),
    ]);
    expect(story.marks()).toHaveLength(2);
    expect(story.goneAt(ANA, 2_000)).toBe(900_000);
  });

  it.each([['forwards'], ['backwards']])('an outage is one mark, read %s', (how) => {
    const story = new Story();
    const entries = [
      entry('fleet.stalled', 1_000, ANA, { error: 'no answer' }),
      entry('fleet.resumed', 4_000, ANA, { afterMs: 3_000 }),
    ];
    for (const one of how === 'forwards' ? entries : [...entries].reverse()) story.add([one]);
    expect(story.marks()).toMatchObject([{ kind: 'outage', at: 1_000, until: 4_000, who: ANA }]);
  });

  it('an outage that has not ended lasts until now; one without a beginning is known by its end', () => {
    const story = new Story();
    story.add([
      entry('fleet.resumed', 4_000, BOB, { afterMs: 3_000 }),
      entry('fleet.stalled', 9_000, ANA, { error: 'no answer' }),
    ]);
    expect(story.marks()).toMatchObject([
      { at: 1_000, until: 4_000, who: BOB },
      { at: 9_000, until: Number.POSITIVE_INFINITY, who: ANA },
    ]);
  });

  it('marks are in order of time and know their target', () => {
    const story = new Story();
    story.add([
      entry('session.resumed', 9_000, ANA, { session: 't' }),
      entry('session.paused', 2_000, ANA, { session: 't' }),
      entry('operator.acted', 1_999, ANA, { action: 'session.pause', subject: 't', by: 'x' }),
      entry('intent.accepted', 5, ANA, { session: 'other' }),
    ]);
    expect(story.marks().map(({ kind }) => kind)).toEqual(['operator', 'pause', 'resume']);
    expect(story.marksOf('t')).toHaveLength(2);
  });

  it('leases that are no targets have no lanes', () => {
    const story = new Story();
    story.add([lease('acquired', 1_000, ANA, 100, { leaseClass: 'lease' })]);
    expect([...story.targets().keys()]).toEqual([]);
  });
});

describe('lanes of members', () => {
  it('how many each had, from the beginning of time on', () => {
    const story = new Story();
    story.add(HANDOVER);
    const steps = ownedOver([story.tenures('t')]);
    expect(steps.get(ANA)).toEqual([
      { at: 1_000, owned: 1 },
      { at: 9_000, owned: 0 },
    ]);
    expect(steps.get(BOB)).toEqual([{ at: 9_015, owned: 1 }]);
  });

  it('life and drains; ends that are not known are open', () => {
    const story = new Story();
    story.add([
      entry('member.left', 3_000, BOB, { member: ANA, reason: 'expired' }),
      entry('member.joined', 5_000, ANA, { member: ANA, isForeign: false }),
      entry('member.draining', 6_000, ANA, { member: ANA }),
      entry('member.undrained', 7_000, ANA, { member: ANA }),
      entry('member.draining', 8_000, ANA, { member: ANA }),
    ]);
    const { stays, drains } = lifeOf(story.marks(), true);
    expect(stays).toEqual([
      { from: null, to: 3_000 },
      { from: 5_000, to: null },
    ]);
    expect(drains).toEqual([
      { from: 6_000, to: 7_000 },
      { from: 8_000, to: null },
    ]);
  });

  it('one of whom the log says nothing, and who is there, was there all the time', () => {
    expect(lifeOf([], true).stays).toEqual([{ from: null, to: null }]);
    expect(lifeOf([], false).stays).toEqual([]);
  });
});
