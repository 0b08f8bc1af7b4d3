import { describe, expect, it } from 'vitest';
import type { SeenMember } from '../../dashboard/src/data/fleet.ts';
import { beatAgeMs, marginMs, memberState } from '../../dashboard/src/data/member-state.ts';
import { drainingSince, heirsOf, leavingOf } from '../../dashboard/src/views/member/story.ts';
import type { ApiEvent } from '../../src/client/messages.ts';

function member(facts: Partial<SeenMember> = {}): SeenMember {
  const who = { id: 'ana', name: 'ana', weight: 1, version: '1.0.0', startedAt: 0, vitals: null };
  const state = { isDraining: false, isForeign: false, owned: 4, quota: 4 };
  return { ...who, ...state, expiresInMs: 0, expiresAtMs: 30_000, beatTtlMs: 30_000, ...facts };
}

function happened(event: string, at: number, instance: string, facts: object): ApiEvent {
  return { position: String(at), at, instance, event, ...facts };
}

describe('a member', () => {
  it.each([
    ['alive', {}, 9_000],
    ['draining', { isDraining: true }, 9_000],
    ['foreign', { isForeign: true }, 9_000],
    ['heartbeat late', {}, 21_000],
    ['heartbeat late', { isDraining: true }, 21_000],
    ['no heartbeat', {}, 30_000],
    ['alive', { beatTtlMs: null }, 29_000],
  ])('is %s', (word, facts, nowMs) => {
    expect(memberState(member(facts), nowMs).word).toBe(word);
  });

  it('is worse when it is gone than when its heartbeat is late, and a drain is no alarm', () => {
    const level = (nowMs: number, facts: Partial<SeenMember> = {}) =>
      memberState(member(facts), nowMs).level;
    expect([
      level(9_000),
      level(9_000, { isDraining: true }),
      level(21_000),
      level(30_000),
    ]).toEqual(['good', 'info', 'warn', 'bad']);
  });

  it('that is not told of any more is gone', () => {
    expect(memberState(null, 0)).toEqual({ word: 'gone', level: 'bad' });
  });

  it('has a heartbeat as old as what has gone by of its life', () => {
    expect(beatAgeMs(member(), 12_000)).toBe(12_000);
    expect(beatAgeMs(member({ beatTtlMs: null }), 12_000)).toBeNull();
  });

  it('has a margin of what a slow renewal leaves of the TTL', () => {
    const vitals = { ttlMs: 30_000, renewEveryMs: 10_000, renewP50Ms: 2, loopDelayMs: 0 };
    expect(marginMs(member({ vitals: { ...vitals, renewP99Ms: 40 } }))).toBe(29_960);
    expect(marginMs(member({ vitals: { ...vitals, renewP99Ms: null } }))).toBeNull();
    expect(marginMs(member())).toBeNull();
  });
});

describe('the story of a member', () => {
  const taken = (at: number, by: string, how: string, wakeMs = 0) =>
    happened('target.taken', at, by, { from: 'ana', how, wakeMs });

  it('says who took what from it, the most first', () => {
    const events = [
      taken(30, 'cleo', 'failover', 8),
      taken(20, 'ben', 'failover', 23),
      taken(10, 'ben', 'failover', 7),
      taken(5, 'ben', 'handover'),
      happened('target.taken', 4, 'ana', { from: 'ana', how: 'handover' }),
    ];
    expect(heirsOf('ana', events, { how: 'failover' })).toEqual({
      ...{ count: 3, gapMs: 23, lastAt: 30 },
      by: [
        ['ben', 2],
        ['cleo', 1],
      ],
    });
    expect(heirsOf('ana', events, { since: 6 }).count).toBe(3);
    expect(heirsOf('ben', events).count).toBe(0);
  });

  it('counts a drain from when it began, not from one that was taken back', () => {
    const events = [
      happened('member.draining', 51, 'ben', { member: 'ana' }),
      happened('member.draining', 50, 'ana', { member: 'ana' }),
      happened('member.undrained', 40, 'ana', { member: 'ana' }),
      happened('member.draining', 10, 'ana', { member: 'ana' }),
    ];
    expect(drainingSince('ana', events)).toBe(50);
    expect(drainingSince('ben', events)).toBeNull();
  });

  it('names the instance that noticed the end first', () => {
    const events = [
      happened('member.left', 21, 'ben', { member: 'ana', reason: 'expired' }),
      happened('member.left', 20, 'cleo', { member: 'ana', reason: 'expired' }),
    ];
    expect(leavingOf('ana', events)).toEqual({ at: 20, isExpired: true, noticedBy: 'cleo' });
    expect(leavingOf('ben', events)).toBeNull();
  });
});
