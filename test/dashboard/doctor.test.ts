import { describe, expect, it } from 'vitest';
import {
  clockText,
  type Finding,
  marginOf,
  msText,
  sorted,
} from '../../dashboard/src/views/doctor/margin.ts';

describe('a renewal margin', () => {
  const member = { id: 'ana', loopDelayMs: 0, ttlMs: 30_000 };

  it('is ample where most of the TTL is left when renewals are slow', () => {
    const margin = marginOf({ ...member, renewP99Ms: 14, marginMs: 29_986 });
    expect(margin.word).toBe('ample');
    expect(margin.share).toBeCloseTo(0.9995, 3);
    expect(margin.words).toContain('30 s of 30 s are left');
  });

  it('is short where less than a third is, and none where a renewal takes as long as the TTL', () => {
    expect(marginOf({ ...member, renewP99Ms: 24_000, marginMs: 6_000 }).word).toBe('short');
    expect(marginOf({ ...member, renewP99Ms: 31_000, marginMs: -1_000 })).toMatchObject({
      word: 'none',
      share: 0,
    });
  });

  it('is unknown for those who own nothing or do not say', () => {
    expect(marginOf({ ...member, renewP99Ms: null, marginMs: null }).words).toContain(
      'owns nothing',
    );
    const foreign = { ...member, ttlMs: null, renewP99Ms: null, marginMs: null };
    expect(marginOf(foreign)).toMatchObject({ share: null, word: 'unknown' });
  });
});

it('what asks for something to be done comes first, the worst on top', () => {
  const levels = ['ok', 'warn', 'refuse', 'ok', 'warn'] as const;
  const findings: Finding[] = levels.map((level, i) => ({ level, subject: String(i), fact: '' }));
  const { warnings, fine } = sorted(findings);
  expect(warnings.map(({ subject }) => subject)).toEqual(['2', '1', '4']);
  expect(fine.map(({ subject }) => subject)).toEqual(['0', '3']);
});

it('a difference of clocks has a direction only where it is larger than the doubt', () => {
  expect(clockText({ offsetMs: -41.2, uncertaintyMs: 0.4 })).toBe(
    'The store’s clock is behind by 42 ms, give or take 0.40 ms.',
  );
  expect(clockText({ offsetMs: 3, uncertaintyMs: 1 })).toContain('ahead by 3.0 ms');
  expect(clockText({ offsetMs: 0.2, uncertaintyMs: 1 })).toContain('The clocks agree');
});

it('small times are exact, others are for people', () => {
  expect([msText(0.42), msText(3), msText(812), msText(3_815), msText(26_000)]).toEqual([
    '0.42 ms',
    '3.0 ms',
    '812 ms',
    '3.8 s',
    '26 s',
  ]);
});
