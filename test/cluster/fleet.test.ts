import { describe, expect, it } from 'vitest';
import { fleetWorld } from '../support/fleet-world.ts';

describe('sharing targets out', () => {
  it('US1.1 one instance starts: it owns and polls every target at once', async () => {
    const world = fleetWorld();
    await world.add(10);
    const a = await world.start();
    expect(a.owned()).toHaveLength(10);
    await world.clock.advance(1);
    expect(new Set(world.polls.map(({ target }) => target)).size).toBe(10);
  });

  it('US1.2 a third joins two: everything is shared out over three', async () => {
    const world = fleetWorld();
    await world.add(10);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(1_000);
    expect(world.loads([a, b])).toEqual([5, 5]);
    const c = await world.start();
    await world.clock.advance(1_000);
    expect(world.loads([a, b, c]).sort()).toEqual([3, 3, 4]);
    expect(world.overlaps()).toEqual([]);
  });
});
