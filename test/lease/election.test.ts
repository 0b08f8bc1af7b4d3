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
