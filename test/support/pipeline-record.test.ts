import { describe, expect, it } from 'vitest';
import { faultsIn, type Mark, marksOf, runsOf } from './pipeline-record.ts';

/** The moment at which all of these begin, in ms since 1970. */
const START_MS = 1_700_000_000_000;
let processes = 0;

interface Given {
  readonly session?: string;
  readonly channel?: string;
  readonly slot?: string | null;
  /** When its slot was granted; default the moment it begins. */
  readonly grantedMs?: number;
  readonly leader?: number;
}

/** The marks of a pipeline from one moment to another. */
function pipeline(fromMs: number, toMs: number, given: Given = {}): Mark[] {
  const leader = given.leader ?? ++processes;
  const { session = `s${leader}`, channel = `c${leader}`, slot = '1', grantedMs = fromMs } = given;
  const fence = (START_MS + grantedMs) * 1_000;
  return [fromMs, toMs].map((ms, i) => ({
    ...{ atMs: START_MS + ms, what: i === 0 ? 'begin' : 'beat' },
    ...{ pid: leader, leader, session, channel, slot, fence },
  }));
}

const audit = (...marks: Mark[][]) => faultsIn(runsOf(marks.flat()));

describe('the record of pipelines', () => {
  it('has a run for each, from its first mark to its last, with those of its children', () => {
    const [begin, beat] = pipeline(0, 10, { leader: 7 });
    const child = { ...beat, pid: 8, atMs: START_MS + 40 } as Mark;
    const got = { ...beat, what: 'SIGTERM', atMs: START_MS + 20 } as Mark;
    expect(runsOf([child, begin as Mark, got])).toMatchObject([
      {
        ...{ leader: 7, beginMs: START_MS, lastMs: START_MS + 40, longestGapMs: 20 },
        ...{ isEnded: false, signals: ['SIGTERM'] },
      },
    ]);
  });

  it('is read as far as its lines are whole', () => {
    const [mark] = pipeline(0, 1);
    const line = JSON.stringify(mark);
    expect(marksOf(`${line}\n${line}\n${line.slice(0, 20)}`)).toEqual([mark, mark]);
    expect(marksOf('')).toEqual([]);
  });

  it('is in order where each begins after the one before has ended', () => {
    const free = { slot: null };
    const found = audit(
      ...[pipeline(0, 10), pipeline(20, 30), pipeline(5, 25, { slot: '2' })],
      ...[pipeline(0, 50, free), pipeline(0, 50, free)],
    );
    expect(found).toBe('');
  });

  it.each([
    ['slot', {}],
    ['session', { session: 's', slot: null }],
    ['channel', { channel: 'c', slot: null }],
  ])('shows two at once with the same %s, also behind a shorter one', (of, given) => {
    const found = audit(pipeline(0, 100, given), pipeline(20, 30, given), pipeline(90, 120, given));
    expect(found).toContain(`two at once with ${of}`);
    expect(found).toContain('for 10.0 ms');
  });

  it('shows a slot that was granted while another still acted, although that was gone when the next began', () => {
    const found = audit(pipeline(0, 100), pipeline(200, 300, { grantedMs: 50 }));
    expect(found).toMatch(/^1 findings:\nslot 1 granted 49\.0 ms before the last sign of process/);
  });

  it('shows one that began later with a lower fence, and two with the same', () => {
    expect(audit(pipeline(0, 10), pipeline(20, 30, { grantedMs: -5 }))).toContain('is not above');
    expect(audit(pipeline(0, 10), pipeline(20, 30, { grantedMs: 0 }))).toContain('is not above');
  });
});
