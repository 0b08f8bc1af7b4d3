import { expect, it } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { TurnQueue } from '../../src/core/turn-queue.ts';

/** An event loop whose turns the test takes. */
function eventLoop() {
  let next: (() => void)[] = [];
  const clock = { afterInput: (run: () => void) => void next.push(run) } as Pick<
    Clock,
    'afterInput'
  >;
  return {
    clock: clock as Clock,
    get callbacks() {
      return next.length;
    },
    async turn() {
      const now = next;
      next = [];
      for (const run of now) run();
      await null;
    },
  };
}

it('a wait ends after so many turns, for each that waits, with one callback for all', async () => {
  const loop = eventLoop();
  const turns = new TurnQueue(loop.clock, 3);
  const ended: string[] = [];
  const wait = (name: string) => void turns.wait().then(() => ended.push(name));
  wait('a');
  wait('b');
  expect(loop.callbacks).toBe(1);
  await loop.turn();
  wait('c');
  expect(loop.callbacks).toBe(1);
  await loop.turn();
  expect(ended).toEqual([]);
  await loop.turn();
  expect(ended).toEqual(['a', 'b']);
  await loop.turn();
  expect(ended).toEqual(['a', 'b', 'c']);
  expect(loop.callbacks).toBe(0);
  wait('d');
  for (let i = 0; i < 3; i++) await loop.turn();
  expect(ended).toEqual(['a', 'b', 'c', 'd']);
});
