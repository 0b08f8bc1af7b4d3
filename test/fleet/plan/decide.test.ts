import { describe, expect, it } from 'vitest';
import {
  type Decision,
  decide,
  lookAgainAtMs,
  mayGive,
  type RoundSelf,
  type Share,
  STAGGER_MS,
} from '../../../src/fleet/plan/decide.ts';
import { hashMember } from '../../../src/fleet/plan/hash.ts';
import { type PlanMember, rankOf } from '../../../src/fleet/plan/plan.ts';
import { FleetTarget, type TargetState } from '../../../src/fleet/view/fleet-target.ts';

const NOW = 100_000;
const SETTLED = NOW - 1;
const UNSETTLED = NOW + 400;
const NEVER = Number.POSITIVE_INFINITY;
const AT_ONCE = Number.NEGATIVE_INFINITY;

const me = member('me');
const ana = member('ana');
const bob = member('bob');
const draining = member('draining', { isDraining: true });
const foreign = member('foreign', { isForeign: true });
const MEMBERS = [me, ana, bob, draining, foreign];

function member(id: string, more: Partial<PlanMember> = {}): PlanMember {
  return { ...hashMember(id), weight: 1, isDraining: false, isForeign: false, ...more };
}

/** The states that lead to the one that is wanted. */
const WAYS: Record<TargetState, TargetState[]> = {
  watched: [],
  acquiring: ['acquiring'],
  owned: ['acquiring', 'owned'],
  releasing: ['acquiring', 'owned', 'releasing'],
  lost: ['acquiring', 'owned', 'lost'],
};

interface Given {
  state?: TargetState;
  owner?: string | null;
  planned?: string | null;
  pinned?: string | null;
  expiresAtMs?: number;
  freeSinceMs?: number;
  refreshAtMs?: number;
  notBeforeMs?: number;
  revokedUntilMs?: number;
  command?: string;
}

/** A free target that has been free for long, unless the row says otherwise. */
function target({ state = 'watched', ...given }: Given): FleetTarget {
  const made = Object.assign(new FleetTarget('t'), { freeSinceMs: 1, ...given });
  for (const step of WAYS[state]) made.become(step);
  return made;
}

interface Row extends Given {
  isListed?: boolean;
  settledAtMs?: number;
  self?: Partial<RoundSelf>;
  members?: readonly PlanMember[];
}

function view(targets: readonly FleetTarget[], row: Row = {}) {
  const members = row.members ?? MEMBERS;
  return {
    targets,
    isListed: () => row.isListed ?? true,
    members,
    memberOf: (id: string) => members.find((one) => one.id === id && id !== me.id),
    settledAtMs: row.settledAtMs ?? SETTLED,
  };
}

function self(row: Row): RoundSelf {
  return { ...me, isLeaving: false, ...row.self };
}

/** The decision about the one target, without the parts that are empty. */
function decided({ isListed, settledAtMs, self: own, members, ...given }: Row) {
  const one = target(given);
  const row = { isListed, settledAtMs, self: own, members } as Row;
  const before = JSON.stringify(one);
  const decision = decide(view([one], row), self(row), NOW);
  expect(JSON.stringify(one)).toBe(before);
  const { take, ask, release, drop, refresh }: Decision = decision;
  return {
    ...(take.length > 0 && { take: take.length }),
    ...(ask[0] !== undefined && { askFromMs: ask[0].fromMs }),
    ...(release.length > 0 && { release: release.length }),
    ...(drop.length > 0 && { drop: drop.length }),
    ...(refresh[0] !== undefined && { refreshAtMs: refresh[0].atMs }),
  };
}

const NOTHING = {};
const TAKEN = { take: 1 };

/** Where this instance stands among the members that were not planned, and what it waits for that. */
const rank = rankOf(
  me,
  new FleetTarget('t'),
  MEMBERS.filter(({ id }) => id !== 'ana'),
);
const staggerMs = STAGGER_MS * (1 + rank);

describe('decide takes', () => {
  it.each<[string, Row, object]>([
    ['a free target that is planned here', { planned: 'me' }, TAKEN],
    ['a target that was handed to this instance', { owner: 'me', planned: 'ana' }, TAKEN],
    [
      'a target that was handed to this instance, even if it drains',
      { owner: 'me', planned: 'ana', self: { isDraining: true } },
      TAKEN,
    ],
    [
      'a target that was handed to this instance, even if a caller released it here',
      { owner: 'me', planned: 'me', notBeforeMs: NOW + 1 },
      TAKEN,
    ],
    [
      'a target of another member that is free for longer than its rank waits',
      { planned: 'ana', freeSinceMs: NOW - staggerMs },
      TAKEN,
    ],
    [
      'a target that is pinned to another member, if that member does not come',
      { planned: 'ana', pinned: 'ana', freeSinceMs: NOW - staggerMs },
      TAKEN,
    ],
    ['a target whose quarantine has ended', { planned: 'me', expiresAtMs: NOW }, TAKEN],
    ['a target that a caller released here long ago', { planned: 'me', notBeforeMs: NOW }, TAKEN],
    [
      'a target that was revoked from this instance, once the store has it free',
      { planned: 'me', revokedUntilMs: NOW + 1 },
      TAKEN,
    ],
  ])('%s', (_, row, expected) => {
    expect(decided(row)).toEqual(expected);
  });
});

describe('decide leaves', () => {
  it.each<[string, Row, object]>([
    ['a barred target until that ends', { planned: 'me', expiresAtMs: NOW + 1 }, NOTHING],
    [
      'a target in quarantine, even if it is pinned here',
      { planned: 'me', pinned: 'me', expiresAtMs: NOW + 1 },
      NOTHING,
    ],
    ['a free target that no member may own', { planned: null }, { refreshAtMs: NEVER }],
    [
      'a target that a caller released here, for one interval',
      { planned: 'me', notBeforeMs: NOW + 50 },
      { refreshAtMs: NOW + 50 },
    ],
    [
      'a free target of another member while its rank waits',
      { planned: 'ana', freeSinceMs: NOW },
      { refreshAtMs: NOW + staggerMs },
    ],
    ['a free target while this instance drains', { planned: 'me', self: { isDraining: true } }, {}],
    ['a free target while this instance stops', { planned: 'me', self: { isLeaving: true } }, {}],
    [
      'a target that was handed to this instance while it stops',
      { owner: 'me', self: { isLeaving: true } },
      NOTHING,
    ],
    ['a target that it is acquiring', { state: 'acquiring', planned: 'me' }, NOTHING],
    ['a target that it owns', { state: 'owned', owner: 'me', planned: 'ana' }, NOTHING],
    ['a target that it is releasing', { state: 'releasing', planned: 'me' }, NOTHING],
    ['a target whose lost work has not stopped', { state: 'lost', planned: 'me' }, NOTHING],
    ['the target of an owner that keeps it', { owner: 'ana', planned: 'ana' }, NOTHING],
    ['a foreign owner its target', { owner: 'foreign', planned: 'me' }, NOTHING],
    ['an owner without a heartbeat, until its lease expires', { owner: 'x', planned: 'me' }, {}],
  ])('%s', (_, row, expected) => {
    expect(decided(row)).toEqual(expected);
  });

  it('a free target later, the more members it likes better', () => {
    const waits = MEMBERS.filter(({ isDraining, isForeign }) => !isDraining && !isForeign).map(
      (own) => {
        const one = target({ planned: 'gone', freeSinceMs: NOW });
        const [later] = decide(view([one]), { ...own, isLeaving: false }, NOW).refresh;
        return (later?.atMs ?? 0) - NOW;
      },
    );
    expect(waits.toSorted((a, b) => a - b)).toEqual([1, 2, 3].map((place) => place * STAGGER_MS));
  });
});

describe('decide asks', () => {
  it.each<[string, Row, object]>([
    [
      'an owner for a target that is planned here, after the last join has settled',
      { owner: 'ana', planned: 'me' },
      { askFromMs: SETTLED },
    ],
    [
      'an owner later, while more members may join',
      { owner: 'ana', planned: 'me', settledAtMs: UNSETTLED },
      { askFromMs: UNSETTLED },
    ],
    [
      'a draining owner at once, even after a join',
      { owner: 'draining', planned: 'me', settledAtMs: UNSETTLED },
      { askFromMs: AT_ONCE },
    ],
    [
      'at once for a target that is pinned here, even after a join',
      { owner: 'ana', planned: 'me', pinned: 'me', settledAtMs: UNSETTLED },
      { askFromMs: AT_ONCE },
    ],
    [
      'no owner for a target that was revoked from this instance',
      { owner: 'ana', planned: 'me', revokedUntilMs: NOW + 1 },
      NOTHING,
    ],
    [
      'no owner for a target that a caller released here',
      { owner: 'ana', planned: 'me', notBeforeMs: NOW + 1 },
      NOTHING,
    ],
    [
      'no owner while this instance drains',
      { owner: 'ana', planned: 'me', self: { isDraining: true } },
      NOTHING,
    ],
    [
      'no owner while this instance stops',
      { owner: 'ana', planned: 'me', self: { isLeaving: true } },
      NOTHING,
    ],
  ])('%s', (_, row, expected) => {
    expect(decided(row)).toEqual(expected);
  });
});

describe('decide releases a paused or removed target', () => {
  it.each<[string, Row, object]>([
    ['that it owns', { state: 'owned', owner: 'me', isListed: false }, { release: 1 }],
    [
      'even if it stops',
      { state: 'owned', isListed: false, self: { isLeaving: true } },
      { release: 1 },
    ],
    ['that another owns', { owner: 'ana', planned: 'ana', isListed: false }, { drop: 1 }],
    ['that is free and was planned here', { planned: 'me', isListed: false }, { drop: 1 }],
    ['after it is acquired', { state: 'acquiring', isListed: false }, NOTHING],
    ['once, and remembers it until that is done', { state: 'releasing', isListed: false }, NOTHING],
    ['after its lost work has stopped', { state: 'lost', isListed: false }, NOTHING],
  ])('%s', (_, row, expected) => {
    expect(decided(row)).toEqual(expected);
  });
});

describe('lookAgainAtMs', () => {
  const targets = [
    target({ refreshAtMs: NOW + 3 }),
    target({ refreshAtMs: NOW + 2 }),
    target({ state: 'owned', refreshAtMs: NOW + 1 }),
  ];

  it('is when the first lease of a target that is not owned is due', () => {
    expect(lookAgainAtMs(targets, self({}))).toBe(NOW + 2);
  });

  it('is never while this instance drains, or there is nothing to wait for', () => {
    expect(lookAgainAtMs(targets, self({ self: { isDraining: true } }))).toBe(NEVER);
    expect(lookAgainAtMs([], self({}))).toBe(NEVER);
  });
});

describe('mayGive', () => {
  const FULL: Share = { quota: 1, isDraining: false, isSplit: false };

  it.each<[string, Given, PlanMember, number, Partial<Share>, boolean]>([
    ['gives what is above the quota', {}, ana, 2, {}, true],
    ['gives nothing up to the quota', {}, ana, 1, {}, false],
    ['gives everything while it drains', {}, ana, 1, { isDraining: true }, true],
    ['gives a target to the member it is pinned to', { pinned: 'ana' }, ana, 1, {}, true],
    [
      'keeps a target for the live member it is pinned to',
      { pinned: 'bob', planned: 'bob' },
      ana,
      2,
      {},
      false,
    ],
    [
      'gives a target that is pinned to a member that is gone',
      { pinned: 'gone', planned: 'me' },
      ana,
      2,
      {},
      true,
    ],
    ['B-07 gives nothing to a member without its command', { command: 'x' }, ana, 2, {}, false],
    [
      'gives nothing up to the quota that its plan gives away',
      { planned: 'ana' },
      ana,
      1,
      {},
      false,
    ],
    [
      'B-04 gives what its plan gives away, where members have different commands',
      { planned: 'ana' },
      ana,
      1,
      { isSplit: true },
      true,
    ],
    ['gives nothing to a draining member', {}, draining, 2, {}, false],
    ['gives nothing to a foreign member', {}, foreign, 2, { isDraining: true }, false],
    ['gives nothing that it is releasing', { state: 'releasing' }, ana, 2, {}, false],
    ['gives nothing that it does not own', { state: 'watched' }, ana, 2, {}, false],
  ])('%s', (_, given, asker, owned, share, expected) => {
    const one = target({ state: 'owned', owner: 'me', ...given });
    expect(mayGive(one, asker, owned, { ...FULL, ...share })).toBe(expected);
  });
});
