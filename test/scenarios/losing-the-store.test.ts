import { describe, expect, it } from 'vitest';
import { leaveNothingBehind } from '../integration/support/holdfasts.ts';
import { spawnChild } from '../support/child.ts';
import { hostMs } from '../support/host-clock.ts';
import { firstPolls, type Poll } from '../support/poll-record.ts';
import { until } from '../support/until.ts';
import { CALM_MS, CRASH_MS, type TestFleet, TTL_MS } from './support/fleet.ts';
import type { Member } from './support/member.ts';
import { useFleet } from './support/story.ts';
import { deviceIds } from './support/target-ids.ts';

leaveNothingBehind();

/** A lease is believed in for this long from the last confirmed renewal: the TTL without the guard. */
const VALID_MS = TTL_MS - TTL_MS / 20;
/** A renewal is due within a third of the TTL and is given up on after a sixth of it; then nothing new begins. */
const DOUBT_MS = TTL_MS / 3 + TTL_MS / 6 + 300;
/** How soon after its return the store is found and the targets are polled: reconnecting waits a second at most. */
const RETURN_MS = 4_000;
/** As long as a stop may take where there is somebody to hand over to. */
const STOP_MS = 10_000;

/** Who has begun a poll since then. */
function pollersSince(fleet: TestFleet, fromMs: number): Set<string> {
  const polls = fleet.polls.filter(({ startMs }) => startMs >= fromMs);
  return new Set(polls.map(({ instance }) => instance));
}

async function untilPast(momentMs: number): Promise<void> {
  const deadlineMs = momentMs - hostMs() + 5_000;
  await until(() => hostMs() > momentMs, { what: 'the moment to pass', deadlineMs });
}

/** Waits for a poll that gets no answer; later polls of the target do. */
async function untilHung(fleet: TestFleet, id: string): Promise<Poll> {
  fleet.server.slow(id, Infinity);
  const fromMs = hostMs();
  const found = () =>
    fleet.polls.find(({ target, arrivedMs }) => target === id && arrivedMs > fromMs);
  const poll = await until(found, { what: `a poll of '${id}' to hang` });
  fleet.server.slow(id, 60);
  return poll;
}

/** The worst wait, from a moment on, until somebody polled. */
function worstWaitMs(fleet: TestFleet, ids: readonly string[], fromMs: number): number {
  const first = firstPolls(fleet.polls, { fromMs });
  return Math.max(...ids.map((id) => (first.get(id)?.startMs ?? Infinity) - fromMs));
}

describe('a fleet whose Redis is', () => {
  const use = useFleet('redis');
  const ids = deviceIds(12);
  let cut: Member | undefined;

  it('E4 US2.2 FR-012 FR-016 out of reach for one that still reaches its targets: in doubt it begins nothing, and it ends what is under way before the others may begin', async () => {
    const fleet = use();
    await fleet.add(ids);
    [cut] = await fleet.start(1, { isProxied: true });
    await fleet.start(2);
    const owners = await fleet.untilSteady();
    const lost = ids.filter((id) => owners.get(id) === cut?.id);
    expect(lost).toHaveLength(4);
    const [hungId = ''] = lost;
    const hung = await untilHung(fleet, hungId);
    fleet.phase('one is cut off', CRASH_MS);
    const cutMs = hostMs();
    await cut?.proxy?.halfOpen();
    const isTaken = () => {
      const first = firstPolls(fleet.polls, { fromMs: cutMs, ...(cut && { except: cut.id }) });
      return lost.every((id) => first.has(id));
    };
    await until(isTaken, { what: 'the others to take over', deadlineMs: TTL_MS + 2_000 });
    expect(pollersSince(fleet, cutMs + DOUBT_MS)).not.toContain(cut?.id);
    // In doubt, what is under way may go on; once lost, it may not.
    expect(hung.endMs - cutMs).toBeGreaterThan(TTL_MS / 2);
    expect(hung.endMs - cutMs).toBeLessThan(VALID_MS + 100);
    expect(await cut?.owned()).toEqual([]);
  });

  it('US2.2 E1 within reach again: it joins by itself', async () => {
    const fleet = use();
    fleet.phase('it comes back', CALM_MS);
    await cut?.proxy?.pass();
    cut?.proxy?.reset();
    await fleet.untilSteady();
  });

  it('E1 SC-005 FR-016 down for 20 s: nobody polls past its lease, one that is told to stop ends, and all goes on by itself when it is back', async () => {
    const fleet = use();
    const downForMs = 20_000;
    const downMs = hostMs();
    fleet.phase('Redis is down', downForMs + RETURN_MS);
    await fleet.redis.kill();
    const killedMs = hostMs();
    // With nobody to hand over to, and nobody to tell, one that is told to stop ends all the same.
    await untilPast(killedMs + 2 * TTL_MS);
    const [leaving] = fleet.members;
    const toldMs = leaving && (await fleet.stop(leaving));
    expect(hostMs() - (toldMs ?? 0)).toBeLessThan(STOP_MS);
    await untilPast(downMs + downForMs);
    expect(pollersSince(fleet, killedMs + DOUBT_MS)).toEqual(new Set());
    await fleet.redis.restart();
    const backMs = hostMs();
    await fleet.untilPolled();
    expect(worstWaitMs(fleet, ids, backMs)).toBeLessThan(RETURN_MS);
    await fleet.untilSteady();
    fleet.phase('calm again', CALM_MS);
    await fleet.untilSteady();
  });
});

describe('a fleet whose Redis forgets everything', () => {
  const ids = deviceIds(6);
  const targets = () => ids.map((id) => ({ id, url: use().server.urlOf(id) }));
  const use = useFleet('redis', { quarantine: 'on', redis: { appendonly: false } });

  it('SC-005 SC-001 grants nothing anew while somebody who is cut off may still poll, and lets the others go on', async () => {
    const fleet = use();
    fleet.want(ids);
    const poller = { targets: targets() };
    const [cut] = await fleet.start(1, { isProxied: true, poller });
    await fleet.start(1, { poller });
    const owners = await fleet.untilSteady();
    const lost = ids.filter((id) => owners.get(id) === cut?.id);
    expect(lost).toHaveLength(3);
    fleet.phase('restarted empty', 2 * TTL_MS + 1_000);
    const cutMs = hostMs();
    await cut?.proxy?.halfOpen();
    await fleet.redis.restart({ empty: true });
    const first = () => firstPolls(fleet.polls, { fromMs: cutMs, ...(cut && { except: cut.id }) });
    const isTaken = () => lost.every((id) => first().has(id));
    await until(isTaken, { what: 'the other to take over', deadlineMs: 3 * TTL_MS });
    const waits = lost.map((id) => (first().get(id)?.startMs ?? 0) - cutMs);
    expect(Math.min(...waits)).toBeGreaterThan(TTL_MS);
    expect(Math.max(...waits)).toBeLessThan(2 * TTL_MS + 1_000);
    await cut?.proxy?.pass();
    cut?.proxy?.reset();
    await fleet.untilSteady();
  });
});

describe('a fleet whose file', () => {
  const use = useFleet('sqlite');
  const ids = deviceIds(6);

  it('E1 SC-005 FR-016 is locked by a process that has stopped: polling stops with the leases, and goes on by itself', async () => {
    const fleet = use();
    await fleet.add(ids);
    await fleet.start(2);
    await fleet.untilSteady();
    const locker = spawnChild('file-locker.mjs', { args: [fleet.url.slice('sqlite:'.length)] });
    await locker.next('ready');
    fleet.phase('the file is locked', 2 * TTL_MS + RETURN_MS);
    locker.send({ do: 'lock' });
    await locker.next('lock');
    const lockedMs = hostMs();
    await locker.freeze();
    await untilPast(lockedMs + 2 * TTL_MS);
    expect(pollersSince(fleet, lockedMs + DOUBT_MS)).toEqual(new Set());
    // The lock ends with its process.
    await locker.kill();
    const freeMs = hostMs();
    await fleet.untilPolled();
    expect(worstWaitMs(fleet, ids, freeMs)).toBeLessThan(RETURN_MS);
    await fleet.untilSteady();
  });
});
