import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import { SimHost, SimProcess } from '../../../testing/sim/host.ts';
import { Timeline } from '../../../testing/sim/timeline.ts';

function machine(clock: { rate?: number; wallOffsetMs?: number } = {}) {
  const timeline = new Timeline();
  const host = new SimHost(timeline, clock);
  const process = new SimProcess(host, 'p', seededRandom(1));
  const done: string[] = [];
  const note = (what: string) => () => {
    done.push(`${what} at ${Math.round(process.monotonicMs())}`);
  };
  return { timeline, host, process, done, note };
}

describe('a simulated process', () => {
  it('K-04 that was frozen runs its overdue timers before it reads what has arrived', async () => {
    const { timeline, process, done, note } = machine();
    process.after(100, note('timer'));
    process.after(400, note('later timer'));
    timeline.at(50, () => process.freeze(250));
    timeline.at(80, () => process.deliver(note('message')));
    await timeline.run(1_000);
    expect(done).toEqual(['timer at 300', 'message at 300', 'later timer at 400']);
  });

  it('K-04 that freezes in the middle of a turn does the rest of it after the thaw', async () => {
    const { timeline, process, done, note } = machine();
    process.trap = { point: 'act', passes: 0, spring: () => process.freeze(500) };
    timeline.at(100, () => {
      note('before')();
      process.reach('act');
      note('after')();
      process.after(10, note('timer'));
    });
    timeline.at(200, () => process.deliver(note('message')));
    await timeline.run(1_000);
    expect(done).toEqual(['before at 100', 'after at 600', 'message at 600', 'timer at 610']);
  });

  it('can be caught where it reads the clock, and passes that point as often as it is let', async () => {
    const { process } = machine();
    let caught = 0;
    process.trap = { point: 'clock', passes: 2, spring: () => caught++ };
    process.monotonicMs();
    process.monotonicMs();
    expect(caught).toBe(0);
    process.monotonicMs();
    process.monotonicMs();
    expect(caught).toBe(1);
  });

  it('that is killed does nothing more', async () => {
    const { timeline, process, done, note } = machine();
    process.after(100, note('timer'));
    process.soon(note('soon'));
    process.afterInput(note('after input'));
    process.kill();
    process.deliver(note('message'));
    process.after(1, note('late timer'));
    await timeline.run(1_000);
    expect(done).toEqual([]);
    expect(process.pendingTimers).toBe(0);
  });

  it('reads what has arrived before it does what waits for that, also over a freeze', async () => {
    const { timeline, process, done, note } = machine();
    timeline.at(10, () => {
      process.afterInput(note('after input'));
      process.freeze(90);
    });
    timeline.at(50, () => process.deliver(note('message')));
    await timeline.run(1_000);
    expect(done).toEqual(['message at 100', 'after input at 100']);
  });
});

describe('a simulated machine', () => {
  it('that sleeps stops its monotonic clock, and its wall clock goes on', async () => {
    const { timeline, host, process, done, note } = machine();
    const startMs = process.wallMs();
    process.after(100, note('timer'));
    timeline.at(50, () => host.sleep(1_000));
    await timeline.run(2_000);
    expect(done).toEqual(['timer at 100']);
    expect(process.monotonicMs()).toBe(1_000);
    expect(process.wallMs() - startMs).toBe(2_000);
  });

  it('K-04 that sleeps while a process is frozen never turns its monotonic clock back', async () => {
    const { timeline, host, process, done, note } = machine();
    timeline.at(100, () => {
      process.freeze(500);
      note('in the frozen turn')();
      process.after(10, note('timer'));
    });
    timeline.at(200, () => host.sleep(300));
    timeline.at(250, () => host.sleep(1_000));
    await timeline.run(3_000);
    expect(done).toEqual(['in the frozen turn at 600', 'timer at 610']);
  });

  it('hides a sleep where its wall clock is set back by as much, whatever it had been set to before', () => {
    const hides = (...shifts: readonly number[]) => {
      const host = new SimHost(new Timeline());
      for (const ms of shifts) host.stepWall(ms);
      host.sleep(60_000);
      return (backMs: number) => {
        host.stepWall(-backMs);
        return host.hidesSleep(0, 2_000);
      };
    };
    expect(hides()(59_500)).toBe(true);
    expect(hides()(20_000)).toBe(true);
    expect(hides()(90_000)).toBe(false);
    expect(hides(-30_000)(59_500)).toBe(true);
    expect(hides(40_000)(59_500)).toBe(true);
    expect(hides(40_000)(-5_000)).toBe(false);
  });

  it('has clocks that run at its own rate, and a wall clock that can be set', async () => {
    const { timeline, host, process, done, note } = machine({ rate: 1.01 });
    const startMs = process.wallMs();
    process.after(1_010, note('timer'));
    timeline.at(1_000, () => done.push('true second'));
    await timeline.run(999);
    expect(done).toEqual([]);
    await timeline.run(10_000);
    expect(done).toEqual(['timer at 1010', 'true second']);
    host.stepWall(-5_000);
    expect(process.wallMs() - startMs).toBeCloseTo(10_100 - 5_000);
    expect(process.monotonicMs()).toBeCloseTo(10_100);
  });
});
