import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { durationMs } from '../../src/core/duration.ts';
import { Emitter } from '../../src/core/events.ts';
import { instanceId } from '../../src/core/ids.ts';
import { jittered, seededRandom, systemRandom } from '../../src/core/random.ts';
import { type TimerEntry, TimerHeap } from '../../src/core/timer-heap.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import fc from '../support/fast-check.ts';

describe('durations', () => {
  it('are milliseconds, or a number with a unit', () => {
    const cases: [string | number, number][] = [
      [500, 500],
      ['250ms', 250],
      ['30s', 30_000],
      ['1.5s', 1_500],
      ['5m', 300_000],
      ['2h', 7_200_000],
      ['7d', 604_800_000],
    ];
    for (const [given, ms] of cases) expect(durationMs(given, 'x')).toBe(ms);
  });

  it('are nothing else', () => {
    for (const given of [
      '',
      '30',
      's',
      '-1s',
      '1w',
      '1 s',
      '1e3ms',
      'Infinity',
      -1,
      Number.NaN,
      Number.POSITIVE_INFINITY,
    ]) {
      expect(() => durationMs(given, 'x')).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID', field: 'x', value: given }),
      );
    }
  });
});

describe('the agenda', () => {
  it('gives entries in the order of their due times, whatever is moved and removed meanwhile', () => {
    const step = fc.record({ entry: fc.nat(19), dueMs: fc.nat(100), remove: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const agenda = new TimerHeap<TimerEntry & { id: number }>(new FakeClock(), () => {});
        const entries = Array.from({ length: 20 }, (_, id) => ({ id, dueAtMs: 0, index: -1 }));
        const expected = new Map<number, number>();
        for (const { entry, dueMs, remove } of steps) {
          const target = entries[entry];
          if (target === undefined) continue;
          if (remove) agenda.remove(target);
          else agenda.schedule(target, dueMs);
          if (remove) expected.delete(entry);
          else expected.set(entry, dueMs);
        }
        const taken: number[] = [];
        for (let nowMs = 0; nowMs <= 100; nowMs += 10) {
          const due = agenda.takeDue(nowMs);
          for (const { id, dueAtMs } of due) expect(expected.get(id)).toBe(dueAtMs);
          expect(due.every(({ dueAtMs }) => dueAtMs > nowMs - 10 && dueAtMs <= nowMs)).toBe(true);
          taken.push(...due.map(({ dueAtMs }) => dueAtMs).sort((a, b) => a - b));
        }
        expect(taken).toEqual([...expected.values()].sort((a, b) => a - b));
        expect(agenda.size).toBe(0);
      }),
    );
  });

  it('moves many entries at once, whether they are scheduled or not', () => {
    const agenda: TimerHeap<TimerEntry> = new TimerHeap(new FakeClock(), () => {});
    const entries = Array.from({ length: 20 }, () => ({ dueAtMs: 0, index: -1 }));
    for (const entry of entries.slice(0, 15)) agenda.schedule(entry, 1_000);
    for (const some of [entries, entries.slice(0, 1)]) {
      agenda.scheduleAll(some, (entry) => 100 - entries.indexOf(entry));
      expect(agenda.size).toBe(20);
    }
    const inOrder = Array.from({ length: 20 }, () => agenda.takeFirst(100));
    expect(inOrder).toEqual([...entries].reverse());
  });

  it('takes every entry when it is due, not a millisecond later, however often it is rebuilt', async () => {
    const dues = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 80 });
    await fc.assert(
      fc.asyncProperty(dues, dues, fc.integer({ min: 0, max: 20 }), async (some, more, early) => {
        const clock = new FakeClock();
        const startMs = clock.monotonicMs();
        const late: number[] = [];
        const agenda: TimerHeap<TimerEntry> = new TimerHeap(clock, () => {
          // Some go along early: what stays has to be put in order again.
          for (const { dueAtMs } of agenda.takeDue(
            clock.monotonicMs(),
            (e) => (e.dueAtMs % 3) * early,
          )) {
            if (dueAtMs < clock.monotonicMs()) late.push(clock.monotonicMs() - dueAtMs);
          }
        });
        const entry = () => ({ dueAtMs: 0, index: -1 });
        for (const dueMs of some) agenda.schedule(entry(), startMs + dueMs);
        const rest = more.map((dueMs) => ({ ...entry(), dueAtMs: startMs + dueMs }));
        agenda.scheduleAll(rest, ({ dueAtMs }) => dueAtMs);
        await clock.advance(61);
        expect(late).toEqual([]);
        expect(agenda.size).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it('has one timer, at the earliest entry', async () => {
    const clock = new FakeClock();
    const due: number[] = [];
    const agenda: TimerHeap<TimerEntry> = new TimerHeap(clock, () => {
      for (const _ of agenda.takeDue(clock.monotonicMs())) due.push(clock.monotonicMs());
    });
    const startMs = clock.monotonicMs();
    for (const afterMs of [300, 100, 200])
      agenda.schedule({ dueAtMs: 0, index: -1 }, startMs + afterMs);
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(250);
    expect(due.map((ms) => ms - startMs)).toEqual([100, 200]);
    agenda.clear();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('events', () => {
  it('reach their listeners until these unsubscribe', () => {
    const emitter = new Emitter();
    const heard: number[] = [];
    const off = emitter.on('loop.delayed', ({ lateMs }) => heard.push(lateMs));
    emitter.emit('loop.delayed', { lateMs: 1 });
    off();
    emitter.emit('loop.delayed', { lateMs: 2 });
    expect(heard).toEqual([1]);
    expect(emitter.hasListener('loop.delayed')).toBe(false);
  });

  it('survive a listener for failed listeners that fails', () => {
    const emitter = new Emitter();
    const fail = () => {
      throw new Error('bad');
    };
    emitter.on('loop.delayed', fail);
    emitter.on('listener.failed', fail);
    expect(() => emitter.emit('loop.delayed', { lateMs: 1 })).not.toThrow();
  });
});

describe('ids and chance', () => {
  it('an instance id has a name, the boot time in nanoseconds and chance, and is read from the right', () => {
    const id = instanceId(systemRandom, systemClock.startedAtMs, 'api-7fd8c9');
    expect(id).toMatch(/^api-7fd8c9-\d{19}-[0-9a-f]{8}$/);
    expect(instanceId(systemRandom, systemClock.startedAtMs, 'api-7fd8c9')).not.toBe(id);
    expect(instanceId(systemRandom, systemClock.startedAtMs, 'ü {x}')).toMatch(/^---x--\d{19}-/);
  });

  it('a seed repeats its sequence', () => {
    const draw = () =>
      Array.from(
        { length: 5 },
        (
          (random) => () =>
            random.next()
        )(seededRandom(7)),
      );
    expect(draw()).toEqual(draw());
    expect(seededRandom(7).hex(8)).toMatch(/^[0-9a-f]{8}$/);
  });

  it('jitter only ever shortens, by a tenth at most', () => {
    const random = seededRandom(1);
    for (let n = 0; n < 1_000; n++) {
      const ms = jittered(1_000, random);
      expect(ms > 900 - 1e-9 && ms <= 1_000).toBe(true);
    }
  });
});

describe('clocks', () => {
  it('sleep ends with its signal', async () => {
    const controller = new AbortController();
    const asleep = systemClock.sleep(60_000, controller.signal);
    controller.abort(new Error('up'));
    await expect(asleep).rejects.toThrow('up');
    await expect(systemClock.sleep(1, controller.signal)).rejects.toThrow('up');
    await systemClock.sleep(1);
  });

  it('a fake clock runs timers in order, and late after a block', async () => {
    const clock = new FakeClock();
    const ran: string[] = [];
    clock.after(20, () => ran.push('b'));
    clock.after(10, () => ran.push('a'));
    clock.after(10, () => ran.push('a2')).cancel();
    await clock.advance(15);
    expect(ran).toEqual(['a']);
    clock.block(100);
    expect(ran).toEqual(['a']);
    await clock.advance(0);
    expect(ran).toEqual(['a', 'b']);
  });
});
