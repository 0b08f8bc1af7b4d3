import { beforeEach, describe, expect, it } from 'vitest';
import { GroupRun, type Spawn } from '../../../src/worker/supervisor/group-run.ts';
import type { Report } from '../../../src/worker/supervisor/orders.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { deadlineIn } from '../../support/deadline-in.ts';

const GRACE_MS = 500;
/** How long the lease is good for at the start. */
const VALID_MS = 2_000;

/** A group that does what the test says, and remembers what it was sent and when. */
class FakeGroup {
  isAlive = true;
  readonly signals: [string, number][] = [];
  onSignal: (signal: string) => void = () => {};
}

let clock: FakeClock;
let group: FakeGroup;
let reports: Report[];
let supervision: GroupRun;
let onExit: (exit: { code: number | null; signal: NodeJS.Signals | null }) => void;
let onRead: () => void;
let onError: (error: string) => void;
/** The output of the command has been read when it exits. */
let isReadAtOnce: boolean;
let startedMs: number;
let begun: number;

beforeEach(() => {
  clock = new FakeClock();
  group = new FakeGroup();
  reports = [];
  isReadAtOnce = true;
  begun = 0;
  startedMs = clock.monotonicMs();
  const spawn: Spawn = ({ command }, on) => {
    onExit = (exit) => {
      on.onExit(exit);
      if (isReadAtOnce) on.onRead();
    };
    onRead = () => on.onRead();
    onError = (error) => on.onError(error);
    if (command[0] === 'none') return null;
    return {
      group: 42,
      startedTicks: 4711,
      begin: () => {
        begun += 1;
      },
      endOutput: () => {
        on.onProgress('the last word');
        return ['its last line'];
      },
      processes: {
        isAlive: () => group.isAlive,
        signal(signal) {
          group.signals.push([signal, clock.monotonicMs() - startedMs]);
          group.onSignal(signal);
        },
      },
    };
  };
  supervision = new GroupRun(clock, spawn, (report) => void reports.push(report));
});

function order(command = ['sleep'], validMs = VALID_MS): void {
  const what = { command, env: {}, deadline: deadlineIn(clock, validMs), graceMs: GRACE_MS };
  supervision.receive({ do: 'start', isInherited: false, ...what });
}

function start(command?: string[], validMs?: number): void {
  order(command, validMs);
  supervision.receive({ do: 'begin' });
}

/** The command ends, and with it its group. */
function endsBy(signal: NodeJS.Signals): void {
  group.onSignal = (sent) => {
    if (sent !== signal) return;
    group.isAlive = false;
    onExit({ code: null, signal });
  };
}

describe('a command that has not begun', () => {
  it('K-04 waits until its owner has its group on record', async () => {
    order(['sleep'], 60_000);
    await clock.advance(30_000);
    expect(reports).toEqual([{ event: 'started', group: 42, startedTicks: 4711 }]);
    expect([supervision.state, begun]).toEqual(['waiting', 0]);
    supervision.receive({ do: 'begin' });
    supervision.receive({ do: 'begin' });
    expect([supervision.state, begun]).toEqual(['running', 1]);
  });

  it('K-04 never begins when its supervisor was suspended until after the deadline', async () => {
    order();
    endsBy('SIGTERM');
    clock.block(VALID_MS);
    supervision.receive({ do: 'begin' });
    supervision.orphan();
    await clock.advance(100);
    expect(begun).toBe(0);
    expect(reports.at(-1)).toMatchObject({ event: 'ended', signal: 'SIGTERM' });
  });

  it('K-04 begins when its lease is confirmed, if the wall clock was set back in the meantime', async () => {
    order();
    clock.jumpWall(-40_000);
    supervision.receive({ do: 'begin' });
    await clock.advance(500);
    expect([supervision.state, begun]).toEqual(['waiting', 0]);
    supervision.receive({ do: 'extend', deadline: deadlineIn(clock, VALID_MS) });
    await clock.advance(100);
    expect([supervision.state, begun]).toEqual(['running', 1]);
  });

  it.each([
    ['orphaned', () => supervision.orphan()],
    ['ordered', () => supervision.receive({ do: 'stop' })],
    ['terminated', () => supervision.terminate()],
    ['deadline', () => clock.block(VALID_MS)],
  ])('is ended when it is %s, and does not begin after that', async (why, stop) => {
    order();
    endsBy('SIGTERM');
    stop();
    await clock.advance(100);
    supervision.receive({ do: 'begin' });
    expect(reports.at(-1)).toMatchObject({ event: 'ended', why, signal: 'SIGTERM' });
    expect(begun).toBe(0);
  });
});

describe('a supervised command', () => {
  it('that ends by itself is reported once, with its exit code', async () => {
    start();
    expect(supervision.state).toBe('running');
    group.isAlive = false;
    onExit({ code: 7, signal: null });
    await clock.advance(10_000);
    expect(reports).toEqual([
      { event: 'started', group: 42, startedTicks: 4711 },
      { event: 'progress', text: 'the last word' },
      {
        ...{ event: 'ended', why: 'done', code: 7, signal: null },
        ...{ survivors: false, output: ['its last line'] },
      },
    ]);
    expect(group.signals).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('that cannot be started is reported as failed', () => {
    start(['none']);
    onError('ENOENT');
    onRead();
    supervision.orphan();
    expect(reports).toEqual([{ event: 'failed', error: 'ENOENT' }]);
  });

  it('K-04 is not started when its deadline has passed already', () => {
    start(['sleep'], 0);
    expect(reports).toMatchObject([{ event: 'ended', why: 'deadline', code: null }]);
  });

  it('is not started when its owner is gone', () => {
    supervision.orphan();
    start();
    expect(reports).toMatchObject([{ event: 'ended', why: 'orphaned' }]);
  });

  it.each([
    ['orphaned', () => supervision.orphan()],
    ['ordered', () => supervision.receive({ do: 'stop' })],
    ['terminated', () => supervision.terminate()],
  ])('is asked to stop at once when it is %s', async (why, stop) => {
    start();
    await clock.advance(100);
    endsBy('SIGTERM');
    stop();
    await clock.advance(0);
    expect(group.signals).toEqual([
      ['SIGTERM', 100],
      ['SIGCONT', 100],
    ]);
    expect(reports.at(-1)).toMatchObject({ event: 'ended', why, signal: 'SIGTERM' });
  });

  it('K-04 is stopped at its deadline, and killed when the grace is over', async () => {
    start();
    endsBy('SIGKILL');
    await clock.advance(VALID_MS + GRACE_MS);
    expect(group.signals).toEqual([
      ['SIGTERM', VALID_MS],
      ['SIGCONT', VALID_MS],
      ['SIGKILL', VALID_MS + GRACE_MS],
    ]);
    expect(reports.at(-1)).toMatchObject({ event: 'ended', why: 'deadline', survivors: false });
  });

  it('K-04 continues when the lease is renewed', async () => {
    start();
    for (let i = 0; i < 5; i++) {
      await clock.advance(VALID_MS - 100);
      supervision.receive({ do: 'extend', deadline: deadlineIn(clock, VALID_MS) });
    }
    expect(supervision.state).toBe('running');
    await clock.advance(VALID_MS);
    expect(supervision.state).toBe('stopping');
  });

  it('K-04 is killed when its deadline and the grace are over, even if the supervisor was suspended', async () => {
    start();
    endsBy('SIGKILL');
    clock.block(VALID_MS + GRACE_MS - 100);
    await clock.advance(GRACE_MS);
    expect(group.signals).toMatchObject([
      ['SIGTERM', VALID_MS + GRACE_MS - 100],
      ['SIGCONT', VALID_MS + GRACE_MS - 100],
      ['SIGKILL', VALID_MS + GRACE_MS],
    ]);
  });

  it('K-05 is not stopped if a renewal arrived while its supervisor was suspended', async () => {
    start();
    clock.block(VALID_MS + 100);
    clock.afterInput = (run) => {
      supervision.receive({ do: 'extend', deadline: deadlineIn(clock, VALID_MS) });
      run();
    };
    await clock.advance(VALID_MS - 100);
    expect(supervision.state).toBe('running');
    expect(group.signals).toEqual([]);
  });

  it('that is stopped early is killed when the grace is over, counted from then', async () => {
    start();
    endsBy('SIGKILL');
    supervision.receive({ do: 'stop' });
    await clock.advance(2 * GRACE_MS);
    expect(group.signals.at(-1)).toEqual(['SIGKILL', GRACE_MS]);
  });

  it('K-04 is killed at once when the host has slept past deadline and grace', async () => {
    start();
    await clock.advance(500);
    endsBy('SIGKILL');
    clock.jumpWall(60_000);
    await clock.advance(100);
    expect(group.signals.map(([signal]) => signal)).toEqual(['SIGTERM', 'SIGCONT', 'SIGKILL']);
    expect(reports.at(-1)).toMatchObject({ why: 'deadline' });
  });

  it('K-04 continues after the wall clock was set back if its owner has the lease confirmed', async () => {
    start(['sleep'], 23_000);
    await clock.advance(500);
    clock.jumpWall(-40_000);
    await clock.advance(100);
    expect(reports.slice(1)).toEqual([{ event: 'doubt' }]);
    await clock.advance(1_500);
    supervision.receive({ do: 'extend', deadline: deadlineIn(clock, 23_000) });
    await clock.advance(20_000);
    expect(supervision.state).toBe('running');
    expect(reports).toHaveLength(2);
  });

  it('K-04 is stopped 2 s after the wall clock was set back if nothing is confirmed', async () => {
    start(['sleep'], 23_000);
    endsBy('SIGTERM');
    clock.jumpWall(-40_000);
    await clock.advance(2_000);
    expect(supervision.state).toBe('running');
    await clock.advance(200);
    expect(reports.at(-1)).toMatchObject({ why: 'deadline', signal: 'SIGTERM' });
  });

  it('K-04 has the same deadline when the wall clock is set back', async () => {
    start();
    endsBy('SIGTERM');
    await clock.advance(VALID_MS - 200);
    clock.jumpWall(-40_000);
    await clock.advance(200);
    expect(group.signals[0]).toEqual(['SIGTERM', VALID_MS]);
  });

  it('K-04 is stopped by the wall clock after the host has slept, and its owner is told of the doubt', async () => {
    start();
    endsBy('SIGTERM');
    await clock.advance(500);
    clock.jumpWall(1_000);
    await clock.advance(100);
    expect(reports.at(-1)).toEqual({ event: 'doubt' });
    await clock.advance(VALID_MS);
    expect(group.signals[0]).toEqual(['SIGTERM', VALID_MS - 1_000]);
  });

  it('K-08 that leaves processes behind is reported when they have ended, too', async () => {
    start();
    onExit({ code: 3, signal: null });
    expect(group.signals.map(([signal]) => signal)).toEqual(['SIGTERM', 'SIGCONT']);
    expect(reports).toHaveLength(1);
    await clock.advance(GRACE_MS / 2);
    group.isAlive = false;
    await clock.advance(100);
    expect(reports.at(-1)).toMatchObject({ why: 'done', code: 3, survivors: false });
  });

  it('that cannot be ended is reported with survivors', async () => {
    start();
    supervision.orphan();
    await clock.advance(10_000);
    expect(reports.at(-1)).toMatchObject({ why: 'orphaned', survivors: true });
    expect(clock.pendingTimers).toBe(0);
  });

  it('is reported when its output has been read', async () => {
    start();
    isReadAtOnce = false;
    group.isAlive = false;
    onExit({ code: 0, signal: null });
    expect(supervision.state).toBe('ended');
    expect(reports).toHaveLength(1);
    await clock.advance(100);
    onRead();
    expect(reports.at(-1)).toMatchObject({ event: 'ended', why: 'done' });
    await clock.advance(1_000);
    expect(reports).toHaveLength(3);
  });

  it('is reported even if another process keeps its outputs open', async () => {
    start();
    isReadAtOnce = false;
    group.isAlive = false;
    onExit({ code: 0, signal: null });
    await clock.advance(200);
    expect(reports.at(-1)).toMatchObject({ event: 'ended', output: ['its last line'] });
    onRead();
    expect(reports).toHaveLength(3);
    expect(clock.pendingTimers).toBe(0);
  });

  it('gets the signals that are passed on while it runs', () => {
    supervision.receive({ do: 'signal', signal: 'SIGHUP' });
    start();
    supervision.receive({ do: 'signal', signal: 'SIGUSR1' });
    group.isAlive = false;
    onExit({ code: 0, signal: null });
    supervision.receive({ do: 'signal', signal: 'SIGUSR2' });
    expect(group.signals.map(([signal]) => signal)).toEqual(['SIGUSR1']);
  });
});
