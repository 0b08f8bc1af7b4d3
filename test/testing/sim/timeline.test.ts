import { describe, expect, it } from 'vitest';
import { PHASE, Timeline } from '../../../testing/sim/timeline.ts';

describe('what happens in a simulated world', () => {
  it('happens in the order of its moments; at one moment timers, then input, then what waited for it', async () => {
    const timeline = new Timeline();
    const done: string[] = [];
    timeline.at(20, () => done.push('later'));
    timeline.at(10, () => done.push('after input'), PHASE.afterInput);
    timeline.at(10, () => done.push('first input'));
    timeline.at(10, () => done.push('second input'));
    timeline.at(10, () => done.push('timer'), PHASE.timers);
    await timeline.run(15);
    expect(done).toEqual(['timer', 'first input', 'second input', 'after input']);
    expect(timeline.nowMs).toBe(15);
    await timeline.run(20);
    expect(done.at(-1)).toBe('later');
  });

  it('is over, with all that its promises lead to, before the next thing happens', async () => {
    const timeline = new Timeline();
    const done: string[] = [];
    const chain = async () => {
      for (let i = 0; i < 50; i++) await Promise.resolve();
      done.push('all of the first');
    };
    timeline.at(1, () => void chain());
    timeline.at(1, () => done.push('the second'));
    await timeline.run(1);
    expect(done).toEqual(['all of the first', 'the second']);
  });

  it('does soon what was put off within it, and looks around only after that', async () => {
    const timeline = new Timeline();
    const done: string[] = [];
    timeline.onSettled = () => done.push('settled');
    timeline.at(1, () => timeline.soon(() => done.push('soon')));
    await timeline.run(1);
    expect(done).toEqual(['settled', 'soon', 'settled']);
  });

  it('acts in the world with all that its promises lead to, and not while others have their turn', async () => {
    const timeline = new Timeline();
    const isActing = { inside: new Set<boolean>(), outside: new Set<boolean>() };
    const look = async () => {
      for (let i = 0; i < 3; i++) {
        isActing.inside.add(timeline.isActing);
        await Promise.resolve();
      }
    };
    let isOver = false;
    const others = () => {
      isActing.outside.add(timeline.isActing);
      if (!isOver) setImmediate(others);
    };
    setImmediate(others);
    for (let at = 0; at < 5_000; at++) timeline.at(at, () => void look());
    await timeline.run(5_000);
    isOver = true;
    expect(isActing).toEqual({ inside: new Set([true]), outside: new Set([false]) });
    expect(timeline.isActing).toBe(false);
  });

  it('can be taken back, wherever it stands', async () => {
    const timeline = new Timeline();
    const done: number[] = [];
    const planned = Array.from({ length: 50 }, (_, i) =>
      timeline.at((i * 37) % 50, () => done.push((i * 37) % 50)),
    );
    for (const happening of planned.filter(({ atMs }) => atMs % 3 === 0))
      timeline.takeBack(happening);
    await timeline.run(100);
    expect(done).toEqual(Array.from({ length: 50 }, (_, i) => i).filter((i) => i % 3 !== 0));
  });
});
