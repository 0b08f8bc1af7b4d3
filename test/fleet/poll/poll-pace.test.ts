import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/core/errors.ts';
import type { PollContext } from '../../../src/fleet/poll/poll-scheduler.ts';
import type { PollerOptions } from '../../../src/fleet/poller.ts';
import type { Target } from '../../../src/fleet/targets/target-source.ts';
import { open } from '../../../src/holdfast.ts';
import { fleetWorld } from '../../support/fleet-world.ts';

type World = ReturnType<typeof fleetWorld>;

/** A poll that notes when it began, and fails while it is told to. */
function notingPoll(world: World, isFailing: () => boolean) {
  const startedMs: number[] = [];
  const poll = () => {
    startedMs.push(world.clock.monotonicMs());
    if (isFailing()) throw new Error('no answer');
  };
  return { startedMs, poll };
}

const gapsOf = (momentsMs: readonly number[]) =>
  momentsMs.slice(1).map((ms, i) => ms - (momentsMs[i] ?? 0));

function expectIntervals(gapsMs: readonly number[], intervalsMs: readonly number[]): void {
  expect(gapsMs.length).toBeGreaterThanOrEqual(intervalsMs.length);
  for (const [i, intervalMs] of intervalsMs.entries()) {
    expect(gapsMs[i]).toBeLessThanOrEqual(intervalMs + 1);
    expect(gapsMs[i]).toBeGreaterThanOrEqual(intervalMs * 0.9);
  }
}

describe('the pause after failed polls', () => {
  const cases: [string, PollerOptions, number[]][] = [
    ['grows to 1 min by default', {}, [10, 20, 40, 60, 60]],
    ['grows to maxBackoff', { maxBackoff: '25s' }, [10, 20, 25, 25]],
    ["is the interval with 'off'", { maxBackoff: 'off' }, [10, 10, 10, 10]],
    ['is never shorter than the interval', { every: '2m', maxBackoff: '1m' }, [120, 120, 120]],
  ];
  it.each(cases)('B-04 %s', async (_, options, seconds) => {
    const world = fleetWorld();
    await world.add(1);
    const { poll, startedMs } = notingPoll(world, () => true);
    await world.start({ every: '10s', ...options, poll });
    await world.clock.advance(480_000);
    expectIntervals(
      gapsOf(startedMs),
      seconds.map((s) => s * 1_000),
    );
  });

  it('B-04 is shown by explain and by the result, and ends with a success', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    let isFailing = true;
    const { poll, startedMs } = notingPoll(world, () => isFailing);
    const a = await world.start({ every: '10s', poll });
    await world.clock.advance(35_000);
    expect(a.poller.explain(id)?.text).toMatch(
      /Its poll has failed 3 times in a row; the next one begins in \d+ s\.$/,
    );
    const result = (await a.holdfast.fleet.results([id])).get(id);
    expect(result).toMatchObject({ ok: false, failures: 3, error: 'no answer' });
    expect((result?.nextAt ?? 0) - (result?.at ?? 0)).toBeCloseTo(40_000, -2);
    isFailing = false;
    await world.clock.advance(60_000);
    expect(a.poller.explain(id)?.text).not.toContain('failed');
    expectIntervals(gapsOf(startedMs).slice(-2), [10_000, 10_000]);
  });

  it('B-04 ends when the target changes', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const { poll, startedMs } = notingPoll(world, () => true);
    const a = await world.start({ every: '10s', poll });
    await world.clock.advance(75_000);
    const before = startedMs.length;
    await a.holdfast.targets.update(id, { url: 'https://example.com/' });
    await world.clock.advance(500);
    expect(startedMs).toHaveLength(before + 1);
  });

  it('B-04 continues with the next owner', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const first = notingPoll(world, () => true);
    const a = await world.start({ every: '10s', poll: first.poll });
    await world.clock.advance(75_000);
    const second = notingPoll(world, () => true);
    const b = await world.start({ every: '10s', poll: second.poll });
    await a.poller.manager.release(id);
    await world.clock.advance(2_000);
    expect(b.owned()).toEqual([id]);
    expect(second.startedMs).toEqual([]);
    await world.clock.advance(60_000);
    expectIntervals([(second.startedMs[0] ?? 0) - (first.startedMs.at(-1) ?? 0)], [60_000]);
  });
});

describe('the timeout of a target', () => {
  it('B-04 wins over that of the poller', async () => {
    const world = fleetWorld();
    const a = await world.start({ timeout: '1s' });
    await a.holdfast.targets.addAll([{ id: 'slow', timeout: '5s' }, { id: 'usual' }]);
    a.pollMs = 3_000;
    await world.clock.advance(4_500);
    const failed = a.happened.filter(({ name }) => name === 'poll.failed');
    expect(failed.length).toBeGreaterThan(0);
    for (const facts of failed) expect(facts).toMatchObject({ target: 'usual' });
    expect(await a.holdfast.targets.get('slow')).toMatchObject({ timeoutMs: 5_000, data: {} });
  });

  it('B-04 acts on the next poll when it is changed', async () => {
    const world = fleetWorld();
    const a = await world.start();
    await a.holdfast.targets.add({ id: 'slow', timeout: '1s' });
    a.pollMs = 3_000;
    await world.clock.advance(2_500);
    const failures = () => a.happened.filter(({ name }) => name === 'poll.failed').length;
    expect(failures()).toBeGreaterThan(0);
    await a.holdfast.targets.update('slow', { timeout: '5s' });
    await world.clock.advance(1_500);
    const before = failures();
    await world.clock.advance(20_000);
    expect(failures()).toBe(before);
    expect(world.polls.filter(({ startMs, endMs }) => endMs - startMs >= 3_000)).not.toEqual([]);
  });

  it.each([0, -1, '25h', 'soon', true])(
    'B-04 of %s is refused, and nothing is written',
    async (timeout) => {
      const world = fleetWorld();
      const a = await world.start();
      const adding = a.holdfast.targets.add({ id: 'x', timeout: timeout as string });
      await expect(adding).rejects.toThrow(ConfigError);
      await expect(adding).rejects.toMatchObject({ field: 'timeout', value: timeout });
      expect(await a.holdfast.targets.get('x')).toBeNull();
    },
  );
});

describe('a change of owner', () => {
  const noted = (world: World) => {
    const polls: { id: string; atMs: number }[] = [];
    const poll = (target: Target, _: PollContext) => {
      polls.push({ id: target.id, atMs: world.clock.monotonicMs() });
    };
    return { polls, poll };
  };

  it('B-04 by handover does not poll at once what was polled a moment ago', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const { polls, poll } = noted(world);
    const a = await world.start({ every: '1m', poll });
    const b = await world.start({ every: '1m', poll });
    await world.clock.advance(3_000);
    const [owner, other] = a.owned().length > 0 ? [a, b] : [b, a];
    await other.holdfast.fleet.transfer(id, other.id);
    await world.clock.advance(3_000);
    expect(owner.owned()).toEqual([]);
    expect(other.owned()).toEqual([id]);
    expect(polls).toHaveLength(1);
    await world.clock.advance(60_000);
    expectIntervals(gapsOf(polls.map(({ atMs }) => atMs)), [60_000]);
  });

  it('B-04 by failover polls when the dead owner would have', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const { polls, poll } = noted(world);
    const a = await world.start({ every: '20s', poll });
    await world.clock.advance(500);
    a.faults.hang = true;
    const b = await world.start({ every: '20s', poll });
    await world.clock.advance(8_000);
    expect(b.owned()).toEqual([id]);
    expect(polls).toHaveLength(1);
    await world.clock.advance(13_000);
    expect(polls).toHaveLength(2);
  });

  it('B-04 polls at once what is overdue, and what has no result', async () => {
    const world = fleetWorld();
    await world.add(1);
    const { polls, poll } = noted(world);
    const a = await world.start({ every: '2s', poll });
    await world.clock.advance(1_000);
    a.faults.hang = true;
    await world.start({ every: '2s', poll });
    await world.clock.advance(4_500);
    expect(polls.length).toBeGreaterThanOrEqual(2);
    await world.instances[1]?.holdfast.targets.add({ id: 'new' });
    await world.clock.advance(300);
    expect(polls.filter(({ id }) => id === 'new')).toHaveLength(1);
  });

  it('B-04 polls at once where the last result cannot be read', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const { polls, poll } = noted(world);
    const a = await world.start({ every: '1m', poll });
    await world.clock.advance(500);
    const put = { id, value: { at: 'yesterday', tookMs: null } };
    await world.store.records.put('result', [put], { timeoutMs: 1_000 });
    const b = await world.start({ every: '1m', poll });
    await b.holdfast.fleet.transfer(id, b.id);
    await world.clock.advance(3_000);
    expect(a.owned()).toEqual([]);
    expect(polls).toHaveLength(2);
  });
});

describe('a changed interval', () => {
  it('B-04 acts at once', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const { poll, startedMs } = notingPoll(world, () => false);
    const a = await world.start({ every: '1h', poll });
    await world.clock.advance(5_000);
    expect(startedMs).toHaveLength(1);
    await a.holdfast.targets.update(id, { every: '1s' });
    await world.clock.advance(3_500);
    expect(startedMs.length).toBeGreaterThanOrEqual(4);
  });

  it.each([0, '99ms', '25h', 'soon'])('B-04 maxBackoff of %s is refused', async (maxBackoff) => {
    await using holdfast = await open('memory:');
    expect(() => holdfast.poller({ maxBackoff })).toThrow(/^maxBackoff is/);
  });
});
