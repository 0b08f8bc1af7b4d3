import { describe, expect, it } from 'vitest';
import type { ElectOptions } from '../../src/lease/election.ts';
import type { HeldContext } from '../../src/lease/leases.ts';
import { type Actor, world } from '../support/world.ts';

/** A candidate that works until it is told to stop, and says what happens to it. */
function candidate({ holdfast }: Actor, options: Partial<ElectOptions> = {}) {
  const told: string[] = [];
  let held: HeldContext | null = null;
  const election = holdfast.elect('scheduler', {
    onElected: async (context) => {
      held = context;
      told.push('elected');
      await new Promise<void>((resolve) =>
        context.signal.addEventListener('abort', () => resolve()),
      );
      told.push('settled');
    },
    onLost: ({ reason }) => told.push(`lost: ${reason}`),
    ...options,
  });
  const context = () => {
    if (held === null) throw new Error('has never led');
    return held;
  };
  return { election, told, context };
}

describe('Election', () => {
  it('K-13 makes one of several processes the leader, and the others follow', async () => {
    const { clock, actor } = world();
    const [a, b] = [candidate(await actor()), candidate(await actor())];
    await clock.advance(100);
    expect([a.told, b.told]).toEqual([['elected'], []]);
    expect([a.election.state, b.election.state]).toEqual(['leading', 'following']);
    expect([a.election.isLeader, b.election.isLeader]).toEqual([true, false]);
    await clock.advance(300_000);
    expect(b.told).toEqual([]);
  });

  it('K-13 of two processes with the same name one leads, because each has an id of its own', async () => {
    const { clock, actor } = world();
    const [x, y] = [await actor({ name: 'api' }), await actor({ name: 'api' })];
    expect(x.holdfast.instanceId).not.toBe(y.holdfast.instanceId);
    const [a, b] = [candidate(x), candidate(y)];
    await clock.advance(300_000);
    expect([a.election.isLeader, b.election.isLeader]).toEqual([true, false]);
    expect(b.told).toEqual([]);
  });

  it('K-08 stop steps down when the work has ended, and the next process leads with a higher fence', async () => {
    const { clock, actor } = world();
    const [a, b] = [candidate(await actor()), candidate(await actor())];
    await clock.advance(100);
    const stopping = a.election.stop();
    await clock.advance(100);
    await stopping;
    expect(a.told).toEqual(['elected', 'lost: stopped', 'settled']);
    expect(a.election.state).toBe('stopped');
    expect(b.told).toEqual(['elected']);
    expect(b.context().fence).toBeGreaterThan(a.context().fence);
  });

  it('K-08 a leader that stops its own election before its first await leads until its work has ended', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor(), {
      onElected: async () => {
        void a.election.stop();
        await clock.sleep(2_000);
        a.told.push('settled');
      },
    });
    const b = candidate(await actor());
    await clock.advance(1_500);
    expect([a.told, b.told]).toEqual([['lost: stopped'], []]);
    await clock.advance(1_000);
    expect([a.told, b.told]).toEqual([['lost: stopped', 'settled'], ['elected']]);
  });

  it('K-05 a leader that is cut off from the store loses the lead before another can lead, and follows again', async () => {
    const { clock, actor } = world();
    const [first, second] = [await actor(), await actor()];
    const a = candidate(first);
    await clock.advance(10);
    const b = candidate(second);
    first.faults.hang = true;
    await clock.advance(28_600);
    expect(a.told).toEqual(['elected', 'lost: expired', 'settled']);
    expect([a.election.isLeader, b.told]).toEqual([false, []]);
    await clock.advance(12_000);
    expect(b.told).toEqual(['elected']);
    first.faults.hang = false;
    await clock.advance(15_000);
    expect(a.election.state).toBe('following');
    const stopping = b.election.stop();
    await clock.advance(1_000);
    await stopping;
    expect(a.told).toEqual(['elected', 'lost: expired', 'settled', 'elected']);
  });

  it('K-01 a process does not compete again before the work of its last term has ended', async () => {
    const { clock, actor } = world();
    const first = await actor();
    let settle = () => {};
    let terms = 0;
    const election = first.holdfast.elect('scheduler', {
      onElected: () => {
        terms++;
        return new Promise<void>((resolve) => (settle = resolve));
      },
    });
    await clock.advance(100);
    const revoker = await actor();
    await revoker.holdfast.revoke('scheduler', { reason: 'a test', force: true });
    await clock.advance(120_000);
    expect([terms, election.state]).toEqual([1, 'stepping down']);
    settle();
    await clock.advance(120_000);
    expect([terms, election.state]).toEqual([2, 'leading']);
  });

  it('K-13 a process continues to lead after onElected returns, until it is stopped', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor(), { onElected: () => 'done at once' });
    await clock.advance(120_000);
    expect([a.election.isLeader, a.told]).toEqual([true, []]);
    const stopping = a.election.stop();
    await clock.advance(10);
    await stopping;
    expect(a.told).toEqual(['lost: stopped']);
  });

  it('K-14 a leader whose work fails emits an event and steps down, and another process can lead', async () => {
    const { clock, actor } = world();
    const first = await actor();
    const broken = candidate(first, {
      onElected: async () => {
        throw new Error('no configuration');
      },
    });
    const b = candidate(await actor());
    await clock.advance(50);
    expect(broken.told).toEqual(['lost: failed']);
    expect(b.told).toEqual(['elected']);
    expect(first.happened.find(({ name }) => name === 'leader.failed')).toMatchObject({
      error: { message: 'no configuration' },
    });
  });

  it('K-07 an election asks an unreachable store again until it answers', async () => {
    const { clock, actor } = world();
    const first = await actor();
    first.faults.hang = true;
    const a = candidate(first);
    await clock.advance(60_000);
    expect(a.election.state).toBe('following');
    first.faults.hang = false;
    await clock.advance(20_000);
    expect(a.told).toEqual(['elected']);
  });

  it('K-08 closing the Holdfast ends its elections', async () => {
    const { clock, actor } = world();
    const first = await actor();
    const a = candidate(first);
    await clock.advance(100);
    const closing = first.holdfast.close();
    await clock.advance(10_000);
    await closing;
    expect(a.told).toEqual(['elected', 'lost: stopped', 'settled']);
    expect(a.election.state).toBe('stopped');
    expect(clock.pendingTimers).toBe(0);
  });

  it('K-14 the state is following from the first moment, and both changes of leadership are events', async () => {
    const { clock, actor } = world();
    const first = await actor();
    const a = candidate(first);
    expect([a.election.state, a.election.isLeader]).toEqual(['following', false]);
    await clock.advance(100);
    const { fence, lease } = a.context();
    const stopping = a.election.stop();
    await clock.advance(100);
    await stopping;
    const leaderEvents = first.happened.filter(({ name }) => name.startsWith('leader.'));
    expect(leaderEvents).toEqual([
      { name: 'leader.elected', election: 'scheduler', holder: lease.holder, fence },
      { name: 'leader.lost', election: 'scheduler', fence, reason: 'stopped' },
    ]);
  });

  it('K-13 only the leader is one: not a follower, not one whose lease is in doubt, not one that steps down', async () => {
    const { clock, actor } = world();
    const first = await actor();
    let settle = () => {};
    const a = candidate(first, {
      onElected: () => new Promise<void>((resolve) => (settle = resolve)),
    });
    const b = candidate(await actor());
    await clock.advance(100);
    expect([a.election.isLeader, b.election.isLeader]).toEqual([true, false]);
    clock.jumpWall(5_000);
    expect([a.election.state, a.election.isLeader]).toEqual(['leading', false]);
    await clock.advance(100);
    expect(a.election.isLeader).toBe(true);
    const stopping = a.election.stop();
    await clock.advance(10);
    expect([a.election.state, a.election.isLeader]).toEqual(['stepping down', false]);
    settle();
    await clock.advance(100);
    await stopping;
  });

  it('K-13 the work is given the checks of the lease', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor());
    await clock.advance(100);
    const held = a.context();
    expect(held.isHeld()).toBe(true);
    held.assertHeld();
    await expect(held.guard(() => Promise.resolve())).rejects.toMatchObject({
      code: 'GUARD_NOT_OFFERED',
    });
    clock.block(60_000);
    expect(held.isHeld()).toBe(false);
    expect(() => held.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }));
  });

  it('K-08 a leader without work that waits is released by its stop, and the next leads at once', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor(), { onElected: () => {} });
    const b = candidate(await actor());
    await clock.advance(50);
    const stopping = a.election.stop();
    await clock.advance(50);
    await stopping;
    expect([a.told, b.told]).toEqual([['lost: stopped'], ['elected']]);
  });

  it('K-08 stop waits for the work as long as it says, and leaves the key of work that does not end to expire', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor(), { onElected: () => new Promise(() => {}) });
    const b = candidate(await actor());
    await clock.advance(50);
    let isStopped = false;
    const stopping = a.election.stop({ within: '2s' }).then(() => (isStopped = true));
    await clock.advance(1_900);
    expect(isStopped).toBe(false);
    await clock.advance(200);
    expect([isStopped, a.election.state, b.told]).toEqual([true, 'stopped', []]);
    await stopping;
    await clock.advance(31_000);
    expect(b.told).toEqual(['elected']);
  });

  it('K-06 the limit of a stop is checked', async () => {
    const { actor } = world();
    const a = candidate(await actor());
    await expect(a.election.stop({ within: 'soon' })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      field: 'within',
    });
  });

  it('K-08 an election that a listener stops as it begins to lead stops', async () => {
    const { clock, actor } = world();
    const first = await actor();
    first.holdfast.on('leader.elected', () => void a.election.stop());
    const a = candidate(first, { onElected: () => {} });
    await clock.advance(100);
    expect([a.told, a.election.state]).toEqual([['lost: stopped'], 'stopped']);
  });

  it('K-08 an election can be disposed of', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor());
    await clock.advance(50);
    const disposing = a.election[Symbol.asyncDispose]();
    await clock.advance(50);
    await disposing;
    expect(a.election.state).toBe('stopped');
  });

  it('K-08 work that sees why it is stopped is told that the election was closed', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor());
    await clock.advance(50);
    const stopping = a.election.stop();
    await clock.advance(50);
    await stopping;
    expect(a.context().signal.reason).toMatchObject({ code: 'CLOSED' });
    expect(String(a.context().signal.reason)).toContain("election 'scheduler'");
  });

  it('K-13 a candidate competes for longer than one wait lasts', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor());
    await clock.advance(10);
    const second = await actor();
    const b = candidate(second);
    await clock.advance(3_700_000);
    expect(second.names()).not.toContain('leader.failed');
    const stopping = a.election.stop();
    await clock.advance(1_000);
    await stopping;
    expect(b.told).toEqual(['elected']);
  }, 60_000);

  it('K-14 work that fails again and again is tried with pauses that double up to 10 s, and begin anew after a term', async () => {
    const { clock, actor } = world();
    const first = await actor();
    const triesAtMs: number[] = [];
    let fails = true;
    const a = candidate(first, {
      onElected: ({ signal }) => {
        triesAtMs.push(clock.monotonicMs());
        if (fails) throw new Error('no configuration');
        return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      },
    });
    await clock.advance(60_000);
    const pauses = triesAtMs.slice(1).map((at, index) => at - (triesAtMs[index] ?? 0));
    expect(pauses.length).toBeGreaterThan(8);
    expect(pauses[0]).toBeLessThanOrEqual(200);
    for (const [index, pauseMs] of pauses.slice(0, 6).entries()) {
      expect(pauseMs).toBeGreaterThanOrEqual(50 * 2 ** index);
      expect(pauseMs).toBeLessThanOrEqual(200 * 2 ** index);
    }
    expect(Math.max(...pauses)).toBeLessThanOrEqual(16_000);
    expect(Math.max(...pauses)).toBeGreaterThan(4_000);
    fails = false;
    await clock.advance(20_000);
    expect(a.election.isLeader).toBe(true);
    fails = true;
    await first.holdfast.revoke('scheduler', { reason: 'a test', force: true });
    const before = triesAtMs.length;
    await clock.advance(45_000);
    expect(triesAtMs.length - before).toBeGreaterThan(5);
  });

  it('K-14 an onLost that throws is an event, and the lease is released all the same', async () => {
    const { clock, actor } = world();
    const first = await actor();
    const failed: unknown[] = [];
    first.holdfast.on('listener.failed', (facts) => failed.push(facts));
    const error = new Error('pager is down');
    const a = candidate(first, {
      onLost: () => {
        throw error;
      },
    });
    const silent = { onLost: undefined } as unknown as Partial<ElectOptions>;
    const other = await actor();
    other.holdfast.on('listener.failed', (facts) => failed.push(facts));
    const plain = candidate(other, silent);
    await clock.advance(50);
    const stopping = a.election.stop();
    await clock.advance(50);
    await stopping;
    expect(failed).toEqual([{ event: 'leader.lost', error }]);
    expect(plain.told).toEqual(['elected']);
    const ending = plain.election.stop();
    await clock.advance(50);
    await ending;
    expect(plain.told).toEqual(['elected', 'settled']);
    expect(failed).toHaveLength(1);
  });

  it('K-13 a leader that is told of its end does not lead any more, even if its lease still lasts', async () => {
    const { clock, actor } = world();
    const told: unknown[] = [];
    const a = candidate(await actor(), {
      onLost: ({ reason }) => told.push([reason, a.election.isLeader, a.context().isHeld()]),
    });
    await clock.advance(50);
    const stopping = a.election.stop();
    await clock.advance(50);
    await stopping;
    expect(told).toEqual([['stopped', false, true]]);
  });

  it('K-14 a leader that releases its lease itself has stopped, not lost', async () => {
    const { clock, actor } = world();
    const a = candidate(await actor());
    await clock.advance(50);
    const releasing = a.context().lease.release();
    await clock.advance(50);
    await releasing;
    expect(a.told.slice(0, 2)).toEqual(['elected', 'lost: stopped']);
  });

  it('K-14 a revoked leader is told so', async () => {
    const { clock, actor } = world();
    const first = await actor();
    const a = candidate(first);
    await clock.advance(50);
    await first.holdfast.revoke('scheduler', { reason: 'a test', force: true });
    await clock.advance(50);
    expect(a.told.slice(0, 2)).toEqual(['elected', 'lost: revoked']);
  });

  it('K-12 timings are those of the lease', async () => {
    const { clock, actor } = world();
    const { holdfast } = await actor();
    const timings = { ttl: '9s', renewEvery: '2s', stop: '500ms', operationTimeout: '1s' };
    const a = candidate({ holdfast } as Actor, { ...timings, guard: '1s' });
    await clock.advance(50);
    expect(a.context().lease.remainingMs()).toBeGreaterThan(7_900);
    expect(a.context().lease.remainingMs()).toBeLessThanOrEqual(8_000);
  });

  it('K-06 invalid options are refused at once', async () => {
    const { actor } = world();
    const { holdfast } = await actor();
    const onElected = () => {};
    const attempts: [string, () => unknown][] = [
      ['name', () => holdfast.elect('', { onElected })],
      ['onElected', () => holdfast.elect('a', {} as ElectOptions)],
      ['onLost', () => holdfast.elect('a', { onElected, onLost: 1 } as unknown as ElectOptions)],
      ['ttl', () => holdfast.elect('a', { onElected, ttl: 1 })],
      ['forever', () => holdfast.elect('a', { onElected, forever: true } as ElectOptions)],
    ];
    for (const [field, attempt] of attempts)
      expect(attempt, field).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }));
  });
});
