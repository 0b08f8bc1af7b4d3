import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { SeenTarget } from '../../dashboard/src/data/fleet.ts';
import {
  isNotPreferred,
  levelOf,
  placeOnMap,
  STATES,
  wordsFor,
} from '../../dashboard/src/data/states.ts';
import { layoutFor } from '../../dashboard/src/views/map/layout.ts';
import type { TargetReason } from '../../src/client/operating-messages.ts';

// What the page knows asks the browser where it is.
vi.stubGlobal('location', { href: 'http://localhost/', hash: '' });
vi.stubGlobal('addEventListener', () => {});

const fleet = await import('../../dashboard/src/data/fleet.ts');
const lanes = await import('../../dashboard/src/data/lanes.ts');
const { timeLeft } = await import('../../dashboard/src/data/ttl.ts');
const { lately } = await import('../../dashboard/src/data/lately.ts');
const { events, eventVersion } = await import('../../dashboard/src/data/events.ts');
const { headlineOf } = await import('../../dashboard/src/views/map/counts.tsx');
const { wanted } = await import('../../dashboard/src/views/map/filter.ts');

function target(id: string, facts: Partial<SeenTarget> = {}): SeenTarget {
  const owners = { owner: 'ana', planned: 'ana', preferred: 'ana', pinned: null };
  const times = { expiresInMs: 9_000, expiresAtMs: 9_000, movedAtMs: null, movedFrom: null };
  return { id, ...owners, reason: 'kept', ...times, ...facts };
}

/** As the fleet does when the server tells of something. */
function tell(...changed: readonly (SeenTarget | string)[]): void {
  for (const one of changed) {
    const id = typeof one === 'string' ? one : one.id;
    const after = typeof one === 'string' ? undefined : one;
    const before = fleet.targets.get(id);
    if (after === undefined) fleet.targets.delete(id);
    else fleet.targets.set(id, after);
    for (const listener of fleet.onTarget) listener(before, after);
  }
  fleet.version.value++;
}

const idsOf = ({ items }: { items: readonly SeenTarget[] }) => items.map(({ id }) => id);

beforeEach(() => tell(...fleet.targets.keys()));

describe('a target', () => {
  it.each<[TargetReason, string | null, 'owner' | 'attention' | 'paused']>([
    ['kept', 'ana', 'owner'],
    ['moving', 'ana', 'owner'],
    ['foreign', 'php-1', 'owner'],
    ['late', 'ana', 'attention'],
    ['expiring', 'ana', 'attention'],
    ['moving', null, 'attention'],
    ['free', null, 'attention'],
    ['quarantine', null, 'attention'],
    ['revoked', null, 'attention'],
    ['garbage', null, 'attention'],
    ['paused', null, 'paused'],
    ['paused', 'ana', 'paused'],
  ])('that is %s, with %s as its owner, is shown in the lane: %s', (reason, owner, lane) => {
    expect(placeOnMap(target('a', { reason, owner }))).toBe(lane);
  });

  it('has a letter and a word of its own for each way it can be', () => {
    const letters = Object.values(STATES).map(({ letter }) => letter);
    expect(new Set(letters).size).toBe(letters.length);
    expect(new Set(Object.values(STATES).map(({ word }) => word)).size).toBe(letters.length);
  });

  it('is worse without an owner than with one that is late', () => {
    expect(levelOf(target('a'))).toBeUndefined();
    expect(levelOf(target('a', { reason: 'late' }))).toBe('warn');
    expect(levelOf(target('a', { reason: 'expiring' }))).toBe('bad');
    expect(levelOf(target('a', { reason: 'free', owner: null }))).toBe('bad');
    expect(levelOf(target('a', { reason: 'moving', owner: null }))).toBe('bad');
    expect(levelOf(target('a', { reason: 'paused', owner: null }))).toBeUndefined();
  });

  it('says all that is special about it in words', () => {
    const elsewhere = target('a', { preferred: 'ben', pinned: 'ana' });
    expect(wordsFor(elsewhere)).toEqual(['owned', 'not preferred', 'pinned']);
    expect(wordsFor(target('a', { owner: null, reason: 'moving' }))).toEqual(['unowned', 'moving']);
    expect(isNotPreferred(target('a', { owner: null, preferred: 'ben' }))).toBe(false);
  });
});

describe('lanes', () => {
  it('are in order of id, whatever comes when', () => {
    tell(target('c'), target('a'), target('b', { owner: 'ben' }), target('d'));
    expect(idsOf(lanes.laneOf('ana'))).toEqual(['a', 'c', 'd']);
    expect(idsOf(lanes.laneOf('ben'))).toEqual(['b']);
    expect(idsOf(lanes.all)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('follow a target that nobody renews, that nobody has, and that another takes', () => {
    tell(target('a'), target('b'));
    tell(target('a', { reason: 'expiring' }));
    expect(idsOf(lanes.attention)).toEqual(['a']);
    expect(lanes.counts.value).toMatchObject({ owned: 2, uncertain: 1, orphaned: 1, unowned: 0 });
    expect(lanes.doubtful.get('ana')).toBe(1);
    expect(lanes.ownedBy('ana').map(({ id }) => id)).toEqual(['a', 'b']);
    tell(target('a', { reason: 'free', owner: null }));
    expect(lanes.counts.value).toMatchObject({ owned: 1, uncertain: 0, orphaned: 0, unowned: 1 });
    expect(lanes.doubtful.has('ana')).toBe(false);
    tell(target('a', { owner: 'ben', preferred: 'ben' }));
    expect(idsOf(lanes.attention)).toEqual([]);
    expect(idsOf(lanes.laneOf('ben'))).toEqual(['a']);
  });

  it('count each target once, and nothing after all have gone', () => {
    tell(target('a'), target('b', { preferred: 'ben' }), target('c', { reason: 'paused' }));
    expect(lanes.counts.value).toEqual({
      ...{ all: 3, owned: 2, unowned: 0, uncertain: 0, orphaned: 0, notPreferred: 1, paused: 1 },
    });
    tell('a', 'b', 'c');
    expect(lanes.counts.value).toEqual({
      ...{ all: 0, owned: 0, unowned: 0, uncertain: 0, orphaned: 0, notPreferred: 0, paused: 0 },
    });
  });

  it('say that they have changed only where they have', () => {
    tell(target('a'), target('b', { owner: 'ben' }));
    const [ana, ben] = [lanes.laneOf('ana').version.value, lanes.laneOf('ben').version.value];
    tell(target('a', { expiresAtMs: 12_000 }));
    expect(lanes.laneOf('ana').version.value).toBe(ana + 1);
    expect(lanes.laneOf('ben').version.value).toBe(ben);
  });

  it('forget an owner that is gone and has nothing left', () => {
    tell(target('a'));
    tell(target('a', { owner: 'ben' }));
    expect([...lanes.owners.keys()]).toEqual(['ben']);
  });

  it('are shown whole where nothing is filtered', () => {
    tell(target('a'));
    expect(wanted(lanes.all.items)).toBe(lanes.all.items);
  });
});

describe('what is left of a lease', () => {
  const terms = { ttlMs: 30_000, lateBelowMs: 10_000 };

  it('is what the server has told, in a fleet whose renewals it tells of', () => {
    tell(target('a'));
    const left = timeLeft(target('a', { expiresAtMs: 6_000 }), terms, 0);
    expect(left).toEqual({ ms: 6_000, share: 0.2, isAtLeast: false });
  });

  it('is in a large fleet at least what would make it late, as long as it is not said to be', () => {
    tell(...Array.from({ length: 1_001 }, (_, i) => target(`t-${i}`)));
    expect(timeLeft(target('a', { expiresAtMs: 6_000 }), terms, 0)).toMatchObject({
      ...{ ms: 10_000, isAtLeast: true },
    });
    expect(timeLeft(target('a', { expiresAtMs: 6_000, reason: 'late' }), terms, 0)).toMatchObject({
      ...{ ms: 6_000, isAtLeast: false },
    });
  });

  it('is nothing where there is no lease', () => {
    expect(timeLeft(target('a', { expiresAtMs: Number.POSITIVE_INFINITY }), terms, 0)).toBeNull();
  });
});

describe('what has lately moved', () => {
  let position = 0;
  const happened = (event: string, at: number, instance: string, facts: object) => {
    events.push({ position: String(position++), at, instance, event, ...facts });
  };

  beforeEach(() => {
    lately.value = [];
  });

  it('is one line for what one took from another within a moment', () => {
    for (const [i, wakeMs] of [12, 40, 7].entries())
      happened('target.taken', 1_000 + i, 'ben', { from: 'ana', how: 'failover', wakeMs });
    happened('target.taken', 1_003, 'cleo', { from: 'ana', how: 'failover', wakeMs: 5 });
    eventVersion.value++;
    expect(lately.value).toMatchObject([
      { by: 'cleo', from: 'ana', count: 1 },
      { by: 'ben', from: 'ana', how: 'failover', count: 3, gapMs: 40 },
    ]);
    happened('target.taken', 9_000, 'ben', { from: 'ana', how: 'failover', wakeMs: 3 });
    eventVersion.value++;
    expect(lately.value).toHaveLength(3);
  });

  it('is told once where several tell it', () => {
    for (const instance of ['ben', 'cleo'])
      happened('member.left', 20_000, instance, { member: 'ana', reason: 'expired' });
    eventVersion.value++;
    expect(lately.value).toMatchObject([{ member: 'ana', what: 'is gone: its heartbeat expired' }]);
  });
});

describe('recent activity', () => {
  it('is in order of time, even if the log is not', () => {
    lately.value = [];
    const joined = (position: string, at: number, member: string) =>
      events.push({ position, at, instance: 'zoe', event: 'member.joined', member });
    joined('late-1', 50_000, 'ana');
    joined('late-2', 40_000, 'ben');
    joined('late-3', 45_000, 'cleo');
    eventVersion.value++;
    expect(lately.value.map(({ at }) => at)).toEqual([50_000, 45_000, 40_000]);
  });

  it('stays in order when a line grows', () => {
    lately.value = [];
    const took = (position: string, at: number, by: string) =>
      events.push({
        ...{ position, at, instance: by, event: 'target.taken', from: 'x', how: 'handover' },
      });
    took('grow-1', 60_000, 'ana');
    took('grow-2', 61_000, 'ben');
    took('grow-3', 62_000, 'ana');
    eventVersion.value++;
    expect(lately.value).toMatchObject([
      { by: 'ana', count: 2, at: 62_000 },
      { by: 'ben', count: 1, at: 61_000 },
    ]);
  });
});

describe('the status of a fleet', () => {
  const well = { all: 12, owned: 12, unowned: 0, uncertain: 0, orphaned: 0, paused: 0 };

  it.each([
    ['good', 'All 12 targets have an owner.', well, 3],
    ['bad', '2 of 12 targets have no owner.', { ...well, owned: 10, unowned: 2 }, 3],
    ['bad', '1 of 1 target has no owner.', { ...well, all: 1, owned: 0, unowned: 1 }, 3],
    ['bad', 'No instance is running.', { ...well, owned: 0, unowned: 12 }, 0],
    [
      'bad',
      'The owners of 4 targets show no sign of life.',
      { ...well, uncertain: 5, orphaned: 4 },
      3,
    ],
    ['warn', '1 target may lose its owner.', { ...well, uncertain: 1 }, 3],
    ['', 'All 2 targets are paused.', { ...well, all: 2, owned: 0, paused: 2 }, 3],
    ['', 'The fleet has no targets yet.', { ...well, all: 0, owned: 0 }, 3],
  ] as const)('is %s: %s', (tone, title, counts, instances) => {
    expect(headlineOf(counts, instances)).toMatchObject({ tone, title });
  });
});

describe('squares', () => {
  it('of 10,000 targets with 50 members fit a large screen at once', () => {
    const height = 740;
    const { columns, width, step } = layoutFor({
      ...{ lanes: 50, targets: 10_000, width: 1_680, height },
    });
    const high = Math.ceil(200 / Math.floor(width / step)) * step;
    expect(Math.ceil(50 / columns) * (high + 62)).toBeLessThanOrEqual(height);
  });

  it('of a few are large, and never wider than the page', () => {
    for (const width of [366, 800, 1_680])
      for (const members of [1, 3, 9, 50]) {
        const layout = layoutFor({ lanes: members, targets: 60, width, height: 500 });
        expect(layout.columns * (layout.width + 18)).toBeLessThanOrEqual(width);
      }
    expect(layoutFor({ lanes: 3, targets: 60, width: 1_200, height: 500 }).step).toBe(26);
  });
});
