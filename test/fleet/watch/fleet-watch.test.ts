import { describe, expect, it } from 'vitest';
import type { ApiMember, ApiTarget, TargetDetail } from '../../../src/client/operating-messages.ts';
import { seededRandom } from '../../../src/core/random.ts';
import type {
  FleetPicture,
  MemberView,
  PicturedTarget,
  TargetView,
} from '../../../src/fleet/watch/fleet.ts';
import { open } from '../../../src/holdfast.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { jsonFacts } from '../../../src/telemetry/facts.ts';
import { LOG_TOPIC } from '../../../src/telemetry/history.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../../testing/fakes/faulty-store.ts';
import { countedStore } from '../../support/counted-store.ts';
import fc from '../../support/fast-check.ts';
import { watcherOf } from '../../support/fleet-watcher.ts';
import { fleetWorld } from '../../support/fleet-world.ts';
import { revokeShown } from '../../support/revoke-shown.ts';

const CALL = { timeoutMs: 1_000 };
const A = 'ana-1794735731650762000-0000000a';
const B = 'ben-1794735731650762000-0000000b';

/** A store that a test writes to as instances would, and a process that watches it and takes no part. */
async function scene({ deaf = false } = {}) {
  const clock = new FakeClock();
  const inner = createMemoryStore({ clock });
  const { store: reached, faults } = faultyStore(inner, clock);
  if (deaf) reached.signals.subscribe = async () => () => {};
  const { store, calls } = countedStore(reached);
  const holdfast = await open(store, { clock, random: seededRandom(1), history: 'off' });
  const beat = (id: string, attributes: Record<string, unknown> = {}, ttlMs = 60_000) =>
    inner.members.beat({ id, attributes }, { ...CALL, ttlMs });
  const leave = (id: string) => inner.members.leave(id, CALL);
  const take = (id: string, holder: string, ttlMs = 30_000) =>
    inner.leases.acquire([{ key: `poll:lease:${id}`, holder }], {
      ...{ ...CALL, ttlMs, inbox: 'x' },
    });
  const renew = (id: string, holder: string, ttlMs = 30_000) =>
    inner.leases.renew([{ key: `poll:lease:${id}`, holder }], { ...CALL, ttlMs });
  /** As whoever did it writes it down. */
  const log = async (event: string, facts: Record<string, unknown>) => {
    const at = clock.wallMs();
    await inner.log.append([{ at, instance: A, event, ...facts }], CALL);
    await inner.signals.publish(LOG_TOPIC, '');
  };
  const add = (...ids: string[]) => holdfast.targets.addAll(ids.map((id) => ({ id })));
  return {
    ...{ clock, inner, holdfast, faults, calls },
    ...{ beat, leave, take, renew, log, add, fleet: holdfast.fleet },
  };
}

/** A picture without what only time changes. */
function still({ members, targets }: FleetPicture) {
  return {
    members: members.map(({ expiresInMs: _, ...member }) => member),
    targets: targets.map(({ expiresInMs: _, ...target }) => target),
  };
}

describe('a picture of a fleet', () => {
  it('shows the owner, the planned and the preferred member of each target, and what is paused', async () => {
    const { fleet, holdfast, beat, take, add } = await scene();
    await beat(A, { weight: 2, version: '1.2.3' });
    await beat(B, { draining: true });
    await add('a', 'b', 'c');
    await holdfast.targets.pause('c');
    await take('a', A);
    await take('b', B);
    const { members, targets, at, roundTripMs } = await fleet.picture();
    expect(members.map(({ id, owned, quota, startedAt }) => [id, owned, quota, startedAt])).toEqual(
      [
        [A, 1, 2, 1_794_735_731_650],
        [B, 1, 0, 1_794_735_731_650],
      ],
    );
    const likes = { planned: A, preferred: A, pinned: null };
    expect(targets).toEqual([
      { id: 'a', owner: A, ...likes, reason: 'kept', expiresInMs: 30_000 },
      { id: 'b', owner: B, ...likes, reason: 'moving', expiresInMs: 30_000 },
      { id: 'c', owner: null, ...likes, planned: null, reason: 'paused', expiresInMs: null },
    ]);
    expect(at).toBe(Date.UTC(2026, 0, 1));
    expect(roundTripMs).toBe(0);
  });

  it('shows an owner that is gone, a lease that was revoked, and that there is no member', async () => {
    const { fleet, inner, beat, leave, take, add } = await scene();
    await add('a', 'b', 'c');
    expect((await fleet.picture()).targets.map(({ reason }) => reason)).toEqual(
      Array.from({ length: 3 }, () => 'unplaced'),
    );
    await beat(A);
    await beat(B);
    await take('a', B);
    await leave(B);
    await take('c', A);
    await revokeShown(inner, 'poll:lease:c');
    const { targets } = await fleet.picture();
    expect(targets.map(({ reason }) => reason)).toEqual(['expiring', 'free', 'revoked']);
    expect(targets.map(({ expiresInMs }) => expiresInMs)).toEqual([30_000, null, 30_000]);
  });

  it('calls a lease late when its owner has a heartbeat and has not renewed it like its others', async () => {
    const { clock, fleet, beat, take, renew, add } = await scene();
    await beat(A);
    await add('a', 'b');
    await take('a', A);
    await take('b', A);
    await clock.advance(20_001);
    await renew('a', A);
    expect((await fleet.picture()).targets.map(({ reason }) => reason)).toEqual(['kept', 'late']);
    expect(await fleet.target('b')).toMatchObject({
      reason: 'late',
      why: `${A} has a heartbeat, but did not renew it in time: in 9999 ms another instance may take it.`,
    });
  });

  it("calls a lease late by the renewal interval in its owner's heartbeat", async () => {
    const { clock, fleet, beat, take, add } = await scene();
    const vitals = { ttlMs: 30_000, renewEveryMs: 10_000, loopDelayMs: 0 };
    await beat(A, { vitals, beatTtlMs: 60_000 });
    await add('a');
    await take('a', A);
    const reason = async () => (await fleet.picture()).targets[0]?.reason;
    await clock.advance(20_000);
    expect(await reason()).toBe('kept');
    await clock.advance(1);
    expect(await reason()).toBe('late');
    expect((await fleet.picture()).members).toMatchObject([{ beatTtlMs: 60_000, vitals }]);
  });

  it('is made in chunks: a thousand leases in one request', async () => {
    const { fleet, calls, beat, add } = await scene();
    await beat(A);
    await add(...Array.from({ length: 2_500 }, (_, i) => `t${i}`));
    calls.length = 0;
    expect((await fleet.picture()).targets).toHaveLength(2_500);
    expect(calls.filter((call) => call === 'leases.read')).toHaveLength(3);
  });

  it('is, field by field, what goes over the wire', () => {
    // The compiler compares them: fences go as text, and what never ends as null.
    const asMember = (member: MemberView): ApiMember => member;
    const asTarget = (target: PicturedTarget): ApiTarget => target;
    const asDetail = (view: TargetView): TargetDetail => ({
      ...view,
      isPaused: view.reason === 'paused',
      fence: String(view.fence),
    });
    expect([asMember, asTarget, asDetail]).toHaveLength(3);
    const facts = { expiresInMs: Number.POSITIVE_INFINITY, beatTtlMs: null, id: 'a', owner: null };
    expect(JSON.parse(JSON.stringify(jsonFacts(facts)))).toEqual({ ...facts, expiresInMs: null });
  });
});

describe('a target', () => {
  it('is shown with its lease, its record and its last result, in words', async () => {
    const { fleet, holdfast, inner, beat, take } = await scene();
    await beat(A);
    await holdfast.targets.add({ id: 'a', url: 'http://x/y', every: '5s' });
    await take('a', A);
    const result = {
      at: 5,
      by: A,
      ok: true,
      tookMs: 7,
      recent: [
        [5, 7, 1],
        [6, 8, 0],
      ],
    };
    await inner.records.put('result', [{ id: 'a', value: result }], CALL);
    const view = await fleet.target('a');
    expect(view).toMatchObject({
      ...{ id: 'a', owner: A, planned: A, preferred: A, reason: 'kept', expiresInMs: 30_000 },
      ...{ url: 'http://x/y', everyMs: 5_000, lastResult: { by: A, tookMs: 7 } },
      why: `${A} keeps this target: it owns 1 of its share of 1.`,
      recent: [
        { at: 5, tookMs: 7, ok: true },
        { at: 6, tookMs: 8, ok: false },
      ],
    });
    expect(view?.fence).toBeGreaterThan(0);
  });

  it('is shown even if it is paused or was never held; other kinds are not', async () => {
    const { fleet, holdfast, add } = await scene();
    await add('a');
    await holdfast.targets.pause('a');
    expect(await fleet.target('a')).toMatchObject({
      ...{ reason: 'paused', owner: null, planned: null, fence: 0, lastResult: null, recent: [] },
      why: 'it is paused: no instance polls it until it is resumed.',
    });
    expect(await fleet.target('b')).toBeNull();
    await holdfast.targets.add({ id: 'c', kind: 'live' });
    expect(await fleet.target('c')).toBeNull();
  });

  it('costs three requests while the fleet is watched', async () => {
    const { clock, fleet, calls, beat, add } = await scene();
    await beat(A);
    await add('a', 'b');
    const watcher = watcherOf(fleet);
    await clock.advance(0);
    calls.length = 0;
    expect(await fleet.target('a')).toMatchObject({ reason: 'free', planned: A });
    expect(calls).toEqual(['records.get', 'leases.read', 'records.get']);
    await watcher.leave();
  });
});

describe('a watcher of a fleet', () => {
  it('gets a picture first, then each change', async () => {
    const { clock, fleet, beat, take, add } = await scene();
    await beat(A);
    await add('a');
    await take('a', A);
    const watcher = watcherOf(fleet);
    await clock.advance(0);
    expect(watcher.kinds()).toEqual(['picture']);
    expect(watcher.reasons()).toEqual({ a: 'kept' });
    await add('b');
    await clock.advance(100);
    expect(watcher.kinds()).toEqual(['picture', 'change']);
    expect(watcher.changes()[0]?.targets?.map(({ id }) => id)).toEqual(['b']);
    await watcher.leave();
  });

  it('gets changes of leases and members in the log within a tenth of a second', async () => {
    const { clock, fleet, beat, take, log, add } = await scene();
    await beat(A);
    await add('a', 'b');
    const watcher = watcherOf(fleet);
    await clock.advance(10);
    await take('a', A);
    await log('lease.acquired', { leaseClass: 'poll', key: 'a' });
    await clock.advance(100);
    expect(watcher.owners()).toEqual({ a: A, b: null });
    await beat(B);
    await log('member.joined', { member: B });
    await clock.advance(100);
    expect(watcher.picture?.members.map(({ id }) => id)).toEqual([A, B]);
    await watcher.leave();
  });

  it('reads nothing for log entries about other classes of leases', async () => {
    const { clock, fleet, calls, log, add } = await scene();
    await add('a');
    const watcher = watcherOf(fleet);
    await clock.advance(10);
    calls.length = 0;
    await log('lease.acquired', { leaseClass: 'lease', key: 'a' });
    await log('poll.stuck', { target: 'a' });
    await clock.advance(100);
    expect(new Set(calls)).toEqual(new Set(['log.read']));
    await watcher.leave();
  });

  it('gets unreported changes within two seconds', async () => {
    const { clock, fleet, beat, take, leave, add } = await scene({ deaf: true });
    await beat(A);
    await add('a', 'b');
    const watcher = watcherOf(fleet);
    await clock.advance(0);
    await take('a', A);
    await beat(B);
    await clock.advance(1_001);
    expect(watcher.owners()).toEqual({ a: A, b: null });
    expect(watcher.picture?.members).toHaveLength(2);
    await add('c');
    await leave(B);
    await clock.advance(2_001);
    expect(watcher.reasons()).toEqual({ a: 'kept', b: 'free', c: 'free' });
    expect(watcher.picture?.members).toHaveLength(1);
    await watcher.leave();
  });

  it('sees a lease that is not renewed become late, its owner go, and the target free', async () => {
    const { clock, fleet, beat, take, add } = await scene();
    await beat(A, {}, 25_000);
    await beat(B);
    await add('a');
    await take('a', A);
    const watcher = watcherOf(fleet);
    await clock.advance(19_900);
    expect(watcher.reasons()).toEqual({ a: 'kept' });
    await clock.advance(200);
    expect(watcher.reasons()).toEqual({ a: 'late' });
    await clock.advance(4_950);
    expect(watcher.reasons()).toEqual({ a: 'expiring' });
    await clock.advance(4_900);
    expect(watcher.reasons()).toEqual({ a: 'expiring' });
    await clock.advance(200);
    expect(watcher.reasons()).toEqual({ a: 'free' });
    expect(watcher.picture?.targets[0]).toMatchObject({ planned: B, expiresInMs: null });
    await watcher.leave();
  });

  it('gets a change at least every two seconds, even if nothing has changed', async () => {
    const { clock, fleet, beat, add } = await scene();
    await beat(A);
    await add('a');
    const watcher = watcherOf(fleet);
    await clock.advance(0);
    for (let changes = 1; changes <= 5; changes++) {
      await clock.advance(2_000);
      expect(watcher.changes().length).toBeGreaterThanOrEqual(changes);
    }
    const { at, roundTripMs, ...rest } = watcher.changes().at(-1) ?? { at: 0, roundTripMs: 0 };
    expect(rest).toEqual({});
    expect(clock.wallMs() - at).toBeLessThan(2_000);
    expect(roundTripMs).toBe(0);
    await watcher.leave();
  });

  it('gets renewals of leases and heartbeats in a small fleet', async () => {
    const { clock, fleet, beat, take, renew, add } = await scene();
    await beat(A);
    await add('a', 'b');
    await take('a', A);
    const watcher = watcherOf(fleet);
    await clock.advance(9_000);
    const before = watcher.seen.length;
    await renew('a', A);
    await beat(A);
    await clock.advance(1_001);
    const told = watcher.changes().slice(before - 1);
    expect(told.flatMap(({ targets = [] }) => targets.map(({ id }) => id))).toEqual(['a']);
    expect(told.flatMap(({ members = [] }) => members.map(({ id }) => id))).toEqual([A]);
    expect(watcher.picture?.targets[0]?.expiresInMs).toBeGreaterThan(28_000);
    await watcher.leave();
  });

  it('sees the members, with what each owns and should, whenever that changes', async () => {
    const { clock, fleet, beat, take, log, add } = await scene();
    await beat(A);
    await add('a', 'b');
    const watcher = watcherOf(fleet);
    await clock.advance(10);
    await take('b', A);
    await log('lease.acquired', { leaseClass: 'poll', key: 'b' });
    await clock.advance(100);
    expect(watcher.picture?.members[0]).toMatchObject({ owned: 1, quota: 2 });
    await beat(A, { draining: true });
    await clock.advance(1_001);
    expect(watcher.picture?.members[0]).toMatchObject({ isDraining: true });
    await watcher.leave();
  });

  it('is told that the store is unavailable, and afterwards what has changed meanwhile', async () => {
    const { clock, inner, fleet, faults, beat, take, add } = await scene();
    await beat(A);
    await add('a', 'b');
    await take('a', A);
    const watcher = watcherOf(fleet);
    await clock.advance(600);
    faults.refuse = true;
    await clock.advance(10_000);
    expect(watcher.kinds().filter((kind) => kind !== 'change')).toEqual(['picture', 'stalled']);
    await take('b', A);
    await inner.records.remove('session', [{ id: 'a' }], CALL);
    const before = watcher.seen.length;
    faults.refuse = false;
    await clock.advance(6_000);
    expect(watcher.seen.slice(before, before + 2)).toMatchObject([
      { kind: 'resumed' },
      { kind: 'change', change: { removed: ['a'], targets: [{ id: 'b', owner: A }] } },
    ]);
    await watcher.leave();
  });

  it('is told if the store is unavailable from the beginning, and gets the picture later', async () => {
    const { clock, fleet, faults, add } = await scene();
    await add('a');
    faults.refuse = true;
    const watcher = watcherOf(fleet);
    await clock.advance(1_000);
    expect(watcher.kinds()).toEqual(['stalled']);
    faults.refuse = false;
    await clock.advance(5_000);
    expect(watcher.kinds().slice(0, 3)).toEqual(['stalled', 'resumed', 'picture']);
    await watcher.leave();
  });

  it('shares its reads with the other watchers, and nothing is read once the last is gone', async () => {
    const { clock, fleet, calls, add } = await scene();
    await add('a');
    const first = watcherOf(fleet);
    await clock.advance(4_000);
    calls.length = 0;
    await clock.advance(4_000);
    const alone = calls.length;
    const others = [watcherOf(fleet), watcherOf(fleet)];
    await clock.advance(0);
    expect(others.map(({ kinds }) => kinds())).toEqual([['picture'], ['picture']]);
    calls.length = 0;
    await clock.advance(4_000);
    expect(calls.length).toBe(alone);
    await first.leave();
    await others[0]?.leave();
    calls.length = 0;
    await clock.advance(4_000);
    expect(calls.length).toBe(alone);
    await others[1]?.leave();
    await clock.advance(0);
    calls.length = 0;
    await clock.advance(60_000);
    expect(calls).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
    const again = watcherOf(fleet);
    await clock.advance(0);
    expect(again.reasons()).toEqual({ a: 'unplaced' });
    await again.leave();
  });

  it('ends when the Holdfast that it watches through is closed', async () => {
    const { clock, holdfast, add } = await scene();
    await add('a');
    const watcher = watcherOf(holdfast.fleet);
    await clock.advance(0);
    await holdfast.close();
    await clock.advance(10);
    expect(watcher.isOver).toBe(true);
    expect(clock.pendingTimers).toBe(0);
    await expect(watcherOf(holdfast.fleet).leave()).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('gets one merged change if it is slow', async () => {
    const { clock, fleet, beat, take, leave, add } = await scene();
    await beat(A);
    await add('a');
    const end = new AbortController();
    const watching = fleet.watch({ signal: end.signal });
    const [first] = await Promise.all([watching.next(), clock.advance(0)]);
    expect(first.value).toMatchObject({ kind: 'picture' });
    await add('b', 'c');
    await clock.advance(1_001);
    await take('b', A);
    await clock.advance(1_001);
    await beat(B);
    await clock.advance(2_001);
    await leave(B);
    await clock.advance(3_001);
    const [next] = await Promise.all([watching.next(), clock.advance(0)]);
    expect(next.value).toMatchObject({ kind: 'change', change: { members: [{ id: A }] } });
    const change = next.value?.kind === 'change' ? next.value.change : null;
    expect(change?.targets?.map(({ id, owner }) => [id, owner]).sort()).toEqual([
      ['a', null],
      ['b', A],
      ['c', null],
    ]);
    end.abort();
    await watching.return();
  });
});

describe('the cost of watching', () => {
  it('is a few requests a second for a steady fleet of 2,000 targets, and no more when few change', async () => {
    const { clock, fleet, calls, beat, take, log, add } = await scene();
    const ids = Array.from({ length: 2_000 }, (_, i) => `t${i}`);
    await beat(A, {}, 600_000);
    await add(...ids);
    for (const id of ids) await take(id, A, 600_000);
    const watcher = watcherOf(fleet);
    await clock.advance(1_000);
    calls.length = 0;
    await clock.advance(10_000);
    const counts = (name: string) => calls.filter((call) => call === name).length;
    expect(counts('leases.read')).toBeLessThanOrEqual(21);
    expect(counts('members.list')).toBeLessThanOrEqual(11);
    expect(counts('records.changes')).toBeLessThanOrEqual(6);
    expect(counts('log.read')).toBeLessThanOrEqual(6);
    expect(calls.length).toBeLessThanOrEqual(44);
    expect(watcher.changes().flatMap(({ targets = [] }) => targets)).toEqual([]);
    calls.length = 0;
    for (const id of ['t1', 't2', 't3']) await log('lease.lost', { leaseClass: 'poll', key: id });
    await clock.advance(100);
    expect(counts('leases.read')).toBeLessThanOrEqual(2);
    await watcher.leave();
  });
});

describe('the picture and its changes', () => {
  const TARGETS = ['a', 'b', 'c', 'd', 'e'];
  const MEMBERS = [A, B, 'cleo-1794735731650762000-0000000c'];
  const step = fc.oneof(
    fc.record({ act: fc.constant('add' as const), target: fc.constantFrom(...TARGETS) }),
    fc.record({ act: fc.constant('remove' as const), target: fc.constantFrom(...TARGETS) }),
    fc.record({ act: fc.constant('pause' as const), target: fc.constantFrom(...TARGETS) }),
    fc.record({ act: fc.constant('resume' as const), target: fc.constantFrom(...TARGETS) }),
    fc.record({ act: fc.constant('beat' as const), member: fc.constantFrom(...MEMBERS) }),
    fc.record({ act: fc.constant('drain' as const), member: fc.constantFrom(...MEMBERS) }),
    fc.record({ act: fc.constant('leave' as const), member: fc.constantFrom(...MEMBERS) }),
    fc.record({
      act: fc.constantFrom('take' as const, 'revoke' as const),
      target: fc.constantFrom(...TARGETS),
      member: fc.constantFrom(...MEMBERS),
    }),
    fc.record({ act: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 40_000 }) }),
    fc.record({ act: fc.constantFrom('cut' as const, 'mend' as const) }),
  );
  type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

  it('always add up to a new picture, whatever happens, and however late a watcher joins', async () => {
    const run = async (steps: readonly Step[], deaf: boolean) => {
      const world = await scene({ deaf });
      const { clock, inner, holdfast, fleet, faults } = world;
      const writer = (await open(inner, { clock, random: seededRandom(2) })).targets;
      const watchers = [watcherOf(fleet)];
      const perform = async (one: Step) => {
        if (one.act === 'add') await writer.addAll([{ id: one.target }]);
        if (one.act === 'remove') await writer.remove(one.target).catch(() => {});
        if (one.act === 'pause') await writer.pause(one.target).catch(() => {});
        if (one.act === 'resume') await writer.resume(one.target).catch(() => {});
        if (one.act === 'beat') await world.beat(one.member, {}, 30_000);
        if (one.act === 'drain') await world.beat(one.member, { draining: true }, 30_000);
        if (one.act === 'leave') await world.leave(one.member);
        if (one.act === 'take') await world.take(one.target, one.member, 20_000);
        if (one.act === 'revoke') await revokeShown(inner, `poll:lease:${one.target}`);
        if (one.act === 'wait') await clock.advance(one.ms);
        if (one.act === 'cut') faults.refuse = true;
        if (one.act === 'mend') faults.refuse = false;
      };
      for (const [i, one] of steps.entries()) {
        await perform(one);
        await clock.advance(10);
        if (i === 10) watchers.push(watcherOf(fleet));
      }
      faults.refuse = false;
      await clock.advance(10_000);
      const expected = still(await holdfast.fleet.picture());
      // Late is a question of time: who watches has seen how much an owner's leases had left, and who looks once has not.
      const timeless = (reason: string, owner: string | null, planned: string | null) =>
        reason === 'late' ? (owner === planned ? 'kept' : 'moving') : reason;
      for (const { picture, leave } of watchers) {
        const shown = still(picture ?? { at: 0, roundTripMs: 0, members: [], targets: [] });
        const targets = shown.targets.map((target) => {
          return { ...target, reason: timeless(target.reason, target.owner, target.planned) };
        });
        expect({ ...shown, targets }).toEqual(expected);
        await leave();
      }
      expect(clock.pendingTimers).toBe(0);
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), run), {
      numRuns: 60,
    });
  });
});

it('a fleet of real instances is shown correctly through a crash, a drain and a stop', async () => {
  const { clock, store, start, add } = fleetWorld();
  const [a, b] = [await start(), await start()];
  await add(20);
  const eye = await open(store, { clock, random: seededRandom(50) });
  const watcher = watcherOf(eye.fleet);
  await clock.advance(10_000);
  const isKept = () => Object.values(watcher.reasons()).every((reason) => reason === 'kept');
  expect(isKept()).toBe(true);
  expect(watcher.picture?.members.map(({ owned }) => owned)).toEqual([10, 10]);
  a.faults.hang = true;
  await clock.advance(10_000);
  expect(new Set(Object.values(watcher.owners()))).toEqual(new Set([b.id]));
  expect(isKept()).toBe(true);
  const told = watcher.changes().flatMap(({ targets = [] }) => targets);
  expect(told.map(({ reason }) => reason)).toContain('late');
  a.faults.hang = false;
  await clock.advance(20_000);
  await eye.fleet.drain(b.id);
  await clock.advance(10_000);
  expect(new Set(Object.values(watcher.owners()))).toEqual(new Set([a.id]));
  await watcher.leave();
});
