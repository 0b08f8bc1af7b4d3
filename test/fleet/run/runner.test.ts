import { describe, expect, it } from 'vitest';
import { ConfigError, LeaseLostError } from '../../../src/core/errors.ts';
import type { RunnerOptions } from '../../../src/fleet/runner.ts';
import { TaskStoppedError } from '../../../src/fleet/targets/errors.ts';
import { open } from '../../../src/holdfast.ts';
import { runWorld, untilTold } from '../../support/run-world.ts';

const never = () => new Promise<never>(() => {});

describe('Runner', () => {
  it('B-04 one instance runs each target, and a member that joins gets its share when tasks have settled', async () => {
    const world = runWorld();
    const ids = await world.add(12);
    const a = await world.start();
    await world.clock.advance(1_000);
    expect(
      world
        .running()
        .map(({ target }) => target.id)
        .sort(),
    ).toEqual(ids.sort());
    expect(a.runner.inFlight).toBe(12);
    const b = await world.start();
    await world.clock.advance(5_000);
    expect([a.owned().length, b.owned().length]).toEqual([6, 6]);
    expect(world.running()).toHaveLength(12);
    expect(world.overlaps()).toEqual([]);
    const moved = world.tasks.filter(({ endMs }) => Number.isFinite(endMs));
    expect(moved).toHaveLength(6);
    for (const { reason } of moved) expect(reason).toMatchObject({ why: 'released' });
  });

  it('B-04 a target is handed over only when its task has settled', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({}, async (_, context) => {
      await untilTold(context);
      await world.clock.sleep(800);
      context.assertHeld();
    });
    const b = await world.start();
    await b.holdfast.fleet.transfer(id, b.id);
    await world.clock.advance(700);
    expect(b.owned()).toEqual([]);
    await world.clock.advance(1_000);
    expect(b.owned()).toEqual([id]);
    expect(world.overlaps()).toEqual([]);
    expect(a.events('run.exited')).toEqual([]);
  });

  it('B-04 the signal of a task fires when its lease is lost', async () => {
    const world = runWorld();
    await world.add(1);
    const a = await world.start();
    await world.clock.advance(500);
    a.faults.hang = true;
    await world.clock.advance(3_000);
    const [task] = world.tasks;
    expect(task?.reason).toBeInstanceOf(LeaseLostError);
    expect((task?.endMs ?? 0) - (task?.startMs ?? 0)).toBeLessThan(3_000);
    expect(() => task?.context.assertHeld()).toThrow(LeaseLostError);
  });

  it('B-04 a task that throws is started again after a growing, capped pause that every surface shows', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({ backoff: '1s..8s' }, () => Promise.reject(new Error('no route')));
    await world.clock.advance(40_000);
    const exits = a.events('run.exited');
    expect(exits.slice(0, 6).map(({ exits: count }) => count)).toEqual([1, 2, 3, 4, 5, 6]);
    const pauses = exits.slice(0, 6).map(({ restartInMs }) => restartInMs);
    for (const [i, pauseMs] of [1_000, 2_000, 4_000, 8_000, 8_000, 8_000].entries()) {
      expect(pauses[i]).toBeLessThanOrEqual(pauseMs);
      expect(pauses[i]).toBeGreaterThanOrEqual(pauseMs * 0.9);
    }
    const gaps = world.tasks
      .slice(1)
      .map(({ startMs }, i) => startMs - (world.tasks[i]?.endMs ?? 0));
    for (const [i, pauseMs] of pauses.slice(0, 5).entries())
      expect(gaps[i]).toBeCloseTo(pauseMs, -1);
    expect(a.runner.explain(id)?.text).toMatch(
      /Its task has ended \d times in a row \(no route\), and starts again in [\d.]+ s\.$/,
    );
    const result = (await a.holdfast.fleet.results([id])).get(id);
    expect(result).toMatchObject({ ok: false, state: 'waiting', error: 'no route' });
    expect(result?.nextAt).toBeGreaterThan(result?.at ?? 0);
  });

  it('B-04 a task that returns is started again, and one that ran long begins a new row of pauses', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    let runMs = 10;
    const a = await world.start({ backoff: '100ms..2s' }, () => world.clock.sleep(runMs));
    await world.clock.advance(1_000);
    expect(a.events('run.exited').map(({ exits }) => exits)).toEqual([1, 2, 3, 4]);
    expect(a.events('run.exited')[0]?.why).toBeNull();
    runMs = 2_500;
    await world.clock.advance(8_000);
    expect(a.events('run.exited').at(-1)?.exits).toBe(1);
    expect(a.owned()).toEqual([id]);
  });

  it('B-04 a task that ignores its signal is reported as stuck, and never handed over before it settles', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({}, () => world.clock.sleep(20_000));
    const b = await world.start();
    await world.clock.advance(500);
    expect(a.owned()).toEqual([id]);
    await b.holdfast.fleet.transfer(id, b.id);
    await world.clock.advance(10_000);
    expect(a.events('run.stuck')).toMatchObject([{ target: id }]);
    expect(a.runner.explain(id)?.text).toContain('although it was told to stop');
    expect(b.owned()).toEqual([]);
    await world.clock.advance(15_000);
    expect(a.events('run.settled')).toHaveLength(1);
    expect(b.owned()).toEqual([id]);
    expect(world.overlaps()).toEqual([]);
  });

  it('B-04 a stopping instance tells its tasks to stop and hands their targets over', async () => {
    const world = runWorld();
    await world.add(6);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(4_000);
    const stopping = a.runner.stop();
    await world.clock.advance(2_000);
    await stopping;
    expect(a.runner.state).toBe('stopped');
    expect(b.owned()).toHaveLength(6);
    expect(world.running()).toHaveLength(6);
    expect(world.overlaps()).toEqual([]);
    expect(a.events('lease.abandoned')).toEqual([]);
  });

  it('B-04 a stuck task does not block a stop: its lease expires', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({}, never);
    await world.clock.advance(500);
    const b = await world.start();
    const stopping = a.runner.stop({ within: '2s' });
    await world.clock.advance(2_100);
    await stopping;
    expect(a.events('lease.abandoned')).toHaveLength(1);
    expect(b.owned()).toEqual([]);
    await world.clock.advance(3_500);
    expect(b.owned()).toEqual([id]);
  });

  it('B-05 a task that is found stuck after the stop leaves no timer behind', async () => {
    const world = runWorld();
    await world.add(1);
    const a = await world.start({ stuckAfter: '1m', onStuck: 'restart' }, never);
    await world.clock.advance(500);
    const closing = a.holdfast.close({ within: '2s' });
    await world.clock.advance(30_000);
    await closing;
    expect(a.events('run.stuck')).toHaveLength(1);
    expect(world.clock.pendingTimers).toBe(0);
  });

  it('B-04 a paused target is stopped, and a resumed one is started again', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    await world.clock.advance(500);
    await a.holdfast.targets.pause(id);
    await world.clock.advance(500);
    expect(world.running()).toEqual([]);
    await a.holdfast.targets.resume(id);
    await world.clock.advance(1_000);
    expect(world.running()).toHaveLength(1);
  });

  it('B-04 a task whose target changes is started again with the new data, without a pause', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    await world.clock.advance(500);
    await a.holdfast.targets.update(id, { number: 42 });
    await world.clock.advance(300);
    expect(world.tasks).toHaveLength(2);
    expect(world.tasks[0]?.reason).toBeInstanceOf(TaskStoppedError);
    expect(world.tasks[0]?.reason).toMatchObject({ why: 'changed' });
    expect(world.tasks[1]?.target).toMatchObject({ id, number: 42 });
    expect(world.overlaps()).toEqual([]);
  });

  it('B-04 no task begins while the lease is uncertain', async () => {
    const world = runWorld();
    await world.add(1);
    const a = await world.start({ backoff: '10ms' }, (_, { signal }) =>
      world.clock.sleep(400, signal).catch(() => {}),
    );
    await world.clock.advance(900);
    a.faults.refuse = true;
    await world.clock.advance(700);
    const before = world.tasks.length;
    await world.clock.advance(600);
    expect(world.tasks).toHaveLength(before);
    a.faults.refuse = false;
    await world.clock.advance(1_500);
    expect(world.tasks.length).toBeGreaterThan(before);
  });
});

describe('progress', () => {
  it('B-05 a task without progress for stuckAfter is reported once, with its target and for how long', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    let isMoving = true;
    const a = await world.start({ stuckAfter: '2s' }, async (_, { signal, progress }) => {
      while (!signal.aborted) {
        await world.clock.sleep(500, signal).catch(() => {});
        if (isMoving) progress();
      }
    });
    await world.clock.advance(10_000);
    expect(a.events('run.silent')).toEqual([]);
    isMoving = false;
    await world.clock.advance(6_000);
    expect(a.events('run.silent')).toMatchObject([{ target: id, isStopped: false }]);
    expect(a.events('run.silent')[0]?.silentForMs).toBeCloseTo(2_000, -2);
    expect((await a.holdfast.fleet.results([id])).get(id)).toMatchObject({ state: 'silent' });
    expect(world.tasks).toHaveLength(1);
    isMoving = true;
    await world.clock.advance(2_000);
    expect(a.events('run.resumed')).toMatchObject([{ target: id }]);
  });

  it("B-05 with onStuck 'restart' a silent task is told to stop, and started again after a pause", async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({ stuckAfter: '2s', onStuck: 'restart', backoff: '1s' });
    await world.clock.advance(3_500);
    expect(world.tasks[0]?.reason).toMatchObject({ why: 'silent', target: id });
    expect(a.events('run.exited')[0]?.why).toContain('no progress');
    expect(world.tasks).toHaveLength(2);
    expect(a.owned()).toEqual([id]);
  });

  it("B-05 with onStuck 'restart' a task that ignores its signal loses its lease to another instance", async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({ stuckAfter: '2s', onStuck: 'restart' }, never);
    const b = await world.start({ stuckAfter: '10m' });
    await world.clock.advance(2_500);
    expect(a.owned()).toEqual([id]);
    await world.clock.advance(8_000);
    expect(a.events('run.stuck')).toHaveLength(1);
    expect(a.events('lease.abandoned')).toHaveLength(1);
    expect(b.owned()).toEqual([id]);
    const [stuck, other] = world.tasks;
    expect(other?.by).toBe(b.id);
    expect(other?.context.fence).toBeGreaterThan(stuck?.context.fence ?? 0);
    expect(() => stuck?.context.assertHeld()).toThrow(LeaseLostError);
    // Its own process never starts a second one beside it.
    expect(world.tasks.filter(({ by }) => by === a.id)).toHaveLength(1);
  });

  it('B-05 a process that stood still does not report its tasks as silent', async () => {
    const world = runWorld();
    await world.add(1);
    const options = { stuckAfter: '2s', ttl: '30s' };
    const a = await world.start(options, async (_, { signal, progress }) => {
      while (!signal.aborted) {
        await world.clock.sleep(500, signal).catch(() => {});
        progress();
      }
    });
    await world.clock.advance(1_000);
    world.clock.block(5_000);
    await world.clock.advance(3_000);
    expect(a.events('run.silent')).toEqual([]);
  });
});

describe('the moments at which progress is looked at', () => {
  it('B-05 rounding never makes a task due again at once: the instance goes on', async () => {
    const world = runWorld();
    await world.add(1);
    const a = await world.start({ stuckAfter: 1_000.1 }, async (_, { signal, progress }) => {
      while (!signal.aborted) {
        await world.clock.sleep(333.3, signal).catch(() => {});
        progress();
      }
    });
    await world.clock.advance(60_000);
    expect(a.events('run.silent')).toEqual([]);
    expect(world.running()).toHaveLength(1);
  });
});

describe('maxHold', () => {
  it('B-05 a task that makes progress all the time is told to stop after maxHold, and runs under a new lease', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({ maxHold: '10s' });
    await world.clock.advance(12_000);
    const [first, second] = world.tasks;
    expect((first?.endMs ?? 0) - (first?.startMs ?? 0)).toBeLessThanOrEqual(10_100);
    expect(first?.reason).toMatchObject({ reason: 'max_hold' });
    expect(second?.context.fence).toBeGreaterThan(first?.context.fence ?? 0);
    expect((second?.startMs ?? 0) - (first?.endMs ?? 0)).toBeLessThan(500);
    expect(a.owned()).toEqual([id]);
  });

  it('B-05 a task that never stops keeps its lease no longer than maxHold and one TTL', async () => {
    const world = runWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({ maxHold: '10s' }, never);
    const b = await world.start();
    await world.clock.advance(9_000);
    expect(b.owned()).toEqual([]);
    await world.clock.advance(5_000);
    expect(b.owned()).toEqual([id]);
    expect(a.events('run.stuck')).toHaveLength(1);
  });
});

describe('invalid options of a runner', () => {
  const run = async () => {};
  const cases: [string, object, string][] = [
    ['without run', {}, 'run'],
    ['run that is no function', { run: 'poll' }, 'run'],
    ['poll and run', { run, poll: run }, 'poll'],
    ['stuckAfter of 0', { run, stuckAfter: 0 }, 'stuckAfter'],
    ['stuckAfter that is no duration', { run, stuckAfter: 'soon' }, 'stuckAfter'],
    ['an unknown onStuck', { run, stuckAfter: '1s', onStuck: 'kill' }, 'onStuck'],
    ['onStuck restart without stuckAfter', { run, onStuck: 'restart' }, 'stuckAfter'],
    ['a negative maxHold', { run, maxHold: -1 }, 'maxHold'],
    ['maxHold of 0', { run, maxHold: '0s' }, 'maxHold'],
    ['a backoff that is no range', { run, backoff: '1s-1m' }, 'backoff'],
    ['a backoff that shrinks', { run, backoff: '1m..1s' }, 'backoff'],
    ['a backoff of nothing', { run, backoff: '0s..1s' }, 'backoff'],
    ['three pauses', { run, backoff: '1s..2s..3s' }, 'backoff'],
    ['a weight of 0', { run, weight: 0 }, 'weight'],
    ['run and command', { run, command: ['a'] }, 'run'],
    ['a command as text', { command: 'sh -c x' }, 'command'],
    ['an empty command', { command: [] }, 'command'],
    ['env without a command', { run, env: { A: 'b' } }, 'env'],
    ['env that is no text', { command: ['a'], env: { A: 1 } }, 'env'],
    ['a guard for a command', { command: ['a'], guard: '1s' }, 'guard'],
    ['a grace that leaves no time to renew', { command: ['a'], ttl: '3s', grace: '3s' }, 'grace'],
  ];

  it.each(cases)(
    'B-04 %s is a CONFIG_INVALID that names field, value and rule',
    async (_, options, field) => {
      await using holdfast = await open('memory:');
      let thrown: unknown;
      try {
        holdfast.runner(options as RunnerOptions);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(ConfigError);
      expect(thrown).toMatchObject({ field, rule: expect.any(String) });
    },
  );

  it('B-04 an instance polls or runs: a second service is refused', async () => {
    await using holdfast = await open('memory:');
    holdfast.runner({ run });
    expect(() => holdfast.poller()).toThrow(/this instance has a runner already/);
  });
});
