import { describe, expect, it } from 'vitest';
import { PollHistory, readRecent } from '../../../src/fleet/poll/poll-history.ts';
import { fleetWorld } from '../../support/fleet-world.ts';

const CALL = { timeoutMs: 1_000 };

describe('the last polls of a target', () => {
  it('are as many as there were, then the last thirty, the oldest first', () => {
    const recent = new PollHistory();
    expect(recent.list()).toEqual([]);
    recent.add(1_000, 2.5, true);
    recent.add(2_000, 3, false);
    expect(recent.list()).toEqual([
      [1_000, 2.5, 1],
      [2_000, 3, 0],
    ]);
    for (let at = 3_000; at <= 47_000; at += 1_000) recent.add(at, 1, at !== 20_000);
    const list = recent.list();
    expect(list.map(([at]) => at)).toEqual(
      Array.from({ length: 30 }, (_, i) => 18_000 + i * 1_000),
    );
    expect(list.filter(([, , ok]) => ok === 0)).toEqual([[20_000, 1, 0]]);
  });

  it('are exact to a tenth of a millisecond, over days, and whatever clocks do', () => {
    const recent = new PollHistory();
    const start = 1_794_735_731_650;
    const day = 24 * 3_600_000;
    recent.add(start, 0, true);
    recent.add(start + day, 1_234.56, true);
    recent.add(start + 2 * day, day, false);
    // Set back: it is not told that a poll came before the one before it.
    recent.add(start + day, 5, true);
    expect(recent.list()).toEqual([
      [start - day, 0, 1],
      [start, 1_234.6, 1],
      [start + day, 1_677_721.5, 0],
      [start + day, 5, 1],
    ]);
  });

  it.each([
    undefined,
    null,
    'often',
    {},
    [1, 2, 3],
    [[1, 2]],
    [[1, 2, true]],
    [[1, '2', 1]],
    [[Number.NaN, 2, 1]],
    [[1, 2, 1], null],
  ])('are none where what is stored makes no sense: %j', (value) => {
    expect(readRecent(value)).toEqual([]);
  });

  it('are read back, and never more than thirty', () => {
    const stored = Array.from({ length: 40 }, (_, i) => [i, 1, 1]);
    expect(readRecent(stored)).toEqual(stored.slice(10));
  });

  it('are in the stored result, start again with a new owner, and are read with it', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    await world.clock.advance(1_050);
    const before = (await a.holdfast.fleet.results([id])).get(id);
    expect(before?.recent?.length).toBeGreaterThanOrEqual(4);
    expect(before?.recent?.at(-1)).toEqual([before?.at, before?.tookMs, 1]);
    const b = await world.start();
    const stopped = a.poller.stop();
    await world.clock.advance(700);
    await stopped;
    const after = (await b.holdfast.fleet.results([id])).get(id);
    expect(after).toMatchObject({ by: b.id });
    expect(after?.recent?.length).toBeLessThan(4);
    expect(after?.recent?.at(-1)?.[0]).toBe(after?.at);
  });

  it('that another program wrote in another form are ignored, and the result is read', async () => {
    const world = fleetWorld();
    const a = await world.start();
    const value = { at: 1, by: 'x', ok: true, tookMs: 1, recent: 'lots' };
    await world.store.records.put('result', [{ id: 't', value }], CALL);
    expect((await a.holdfast.fleet.results(['t'])).get('t')).toMatchObject({ at: 1, recent: [] });
  });
});
