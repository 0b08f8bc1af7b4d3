import { describe, expect, it } from 'vitest';
import { fleetWorld } from '../../support/fleet-world.ts';

describe('discovery of targets that other programs wrote', () => {
  it('US1.1 FR-007 delays nothing, however long it takes: the instance owns, polls and beats meanwhile', async () => {
    const world = fleetWorld();
    const ids = await world.add(5);
    world.store.records.discover = () => new Promise(() => {});
    const a = await world.start({ discovery: '30s' });
    expect(a.owned()).toEqual(ids);
    await world.clock.advance(10_000);
    expect(await a.poller.manager.getLiveNodes()).toEqual([a.id]);
    expect(a.owned()).toEqual(ids);
    const stopping = a.poller.stop();
    await world.clock.advance(1_000);
    await stopping;
    expect(a.poller.state).toBe('stopped');
  });

  it('FR-011 runs at the start and then regularly; a failed one is reported, and tried again sooner', async () => {
    const world = fleetWorld();
    const { records } = world.store;
    const walksMs: number[] = [];
    let isFailing = true;
    records.discover = async () => {
      walksMs.push(world.clock.monotonicMs());
      if (isFailing) throw new Error('too much to look at');
      return 0;
    };
    const failures: unknown[] = [];
    const a = await world.instance({ discovery: '30s' });
    a.holdfast.on('discovery.failed', ({ error }) => failures.push(error));
    const starting = a.poller.start();
    await world.clock.advance(0);
    await starting;
    // At once, and about 1, 3 and 7 s after that.
    await world.clock.advance(7_500);
    isFailing = false;
    expect([walksMs.length, failures.length]).toEqual([4, 4]);
    await world.clock.advance(9_000);
    expect(walksMs).toHaveLength(5);
    await world.clock.advance(24_000);
    expect(walksMs).toHaveLength(5);
    await world.clock.advance(6_000);
    expect([walksMs.length, failures.length]).toEqual([6, 4]);
    expect(a.count('fleet.stalled')).toBe(0);
  });
});
