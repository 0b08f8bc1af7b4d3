import { beforeEach, describe, expect, it } from 'vitest';
import type { Ended, Order, Start } from '../../../src/worker/supervisor/orders.ts';
import { SupervisedRun } from '../../../src/worker/supervisor/supervised-run.ts';
import type { CommandReport, SendOrder } from '../../../src/worker/supervisor/supervisor-client.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { deadlineIn } from '../../support/deadline-in.ts';

const GRACE_MS = 500;
/** No process has such an id: a group of that number is gone. */
const NOBODY = { group: 2 ** 22 + 1, startedTicks: 1 };
const TERMINATED: Ended = {
  ...{ event: 'ended', why: 'terminated', code: null, signal: null },
  ...{ survivors: false, output: [] },
};

/** Starts nothing and reports nothing by itself. */
class FakeSupervisor {
  unreadBytes = 0;
  readonly orders: Order[] = [];
  readonly started: Omit<Start, 'isInherited'>[] = [];
  report: (report: CommandReport) => void = () => {};

  start(what: Omit<Start, 'isInherited'>, receive: (report: CommandReport) => void): SendOrder {
    this.started.push(what);
    this.report = receive;
    return (order) => void this.orders.push(order);
  }
}

let clock: FakeClock;
let run: SupervisedRun;
let supervisor: FakeSupervisor;
let stalls: number;
const onStalled = () => {
  stalls += 1;
};

const inMs = (ms: number) => deadlineIn(clock, ms);

beforeEach(() => {
  clock = new FakeClock();
  supervisor = new FakeSupervisor();
  stalls = 0;
  const order = { command: ['x'], env: { MINE: '1' }, deadline: inMs(60_000), graceMs: GRACE_MS };
  run = new SupervisedRun(clock, order);
});

describe('the supervisor of a command is stalled', () => {
  it('when it has not started the command in time', async () => {
    void run.under(supervisor, onStalled);
    await clock.advance(9_999);
    expect(stalls).toBe(0);
    await clock.advance(1);
    expect(stalls).toBe(1);
  });

  it('when it has not reported the end of a stopped command in time', async () => {
    void run.under(supervisor, onStalled);
    supervisor.report({ event: 'started', ...NOBODY });
    run.stop();
    run.stop();
    expect(supervisor.orders).toEqual([{ do: 'stop' }]);
    await clock.advance(GRACE_MS + 2_999);
    expect(stalls).toBe(0);
    await clock.advance(1);
    expect(stalls).toBe(1);
  });

  it('not when its report has arrived, and only this process was late to read it', async () => {
    void run.under(supervisor, onStalled);
    clock.block(20_000);
    clock.afterInput = (then) => {
      supervisor.report({ event: 'started', ...NOBODY });
      then();
    };
    await clock.advance(0);
    expect(stalls).toBe(0);
  });

  it('when it leaves its orders unread', async () => {
    void run.under(supervisor, onStalled);
    run.extend(inMs(1_000));
    expect(stalls).toBe(0);
    supervisor.unreadBytes = 17 * 1_024 * 1_024;
    run.extend(inMs(1_000));
    expect(stalls).toBe(1);
  });

  it('never, if it does what it is ordered to', async () => {
    const under = run.under(supervisor, onStalled);
    supervisor.report({ event: 'started', ...NOBODY });
    await clock.advance(30_000);
    run.stop();
    await clock.advance(GRACE_MS + 500);
    supervisor.report({ ...TERMINATED, why: 'ordered' });
    expect(await under).toBe('ended');
    run.extend(inMs(1_000));
    await clock.advance(30_000);
    expect(stalls).toBe(0);
    expect(clock.pendingTimers).toBe(0);
    expect(supervisor.orders).toEqual([{ do: 'stop' }]);
  });
});

describe('a command', () => {
  it('K-04 begins when it is told to, and not after it was stopped', () => {
    void run.under(supervisor, onStalled);
    supervisor.report({ event: 'started', ...NOBODY });
    run.begin();
    run.stop();
    run.begin();
    expect(supervisor.orders).toEqual([{ do: 'begin' }, { do: 'stop' }]);
  });

  it('K-04 that its supervisor has not reported has not begun, and is gone when the supervisor is', async () => {
    const under = run.under(supervisor, onStalled);
    supervisor.report({ event: 'gone' });
    await clock.advance(200);
    expect(await under).toBe('ended');
    expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
  });

  it('is started with a mark in its environment and with the present deadline', () => {
    run.extend(inMs(70_000));
    void run.under(supervisor, onStalled);
    const [{ env, deadline } = { env: {}, deadline: null }] = supervisor.started;
    expect(env).toEqual({ MINE: '1', HOLDFAST_COMMAND: expect.stringMatching(/^[0-9a-f]{16}$/) });
    expect(deadline).toEqual(inMs(70_000));
  });

  it('that its supervisor refuses because it was told to end goes to another supervisor, once', async () => {
    const under = run.under(supervisor, onStalled);
    supervisor.report(TERMINATED);
    expect(await under).toBe('refused');
    const next = new FakeSupervisor();
    const again = run.under(next, onStalled);
    next.report(TERMINATED);
    expect(await again).toBe('terminated');
    expect(await run.outcome).toEqual(TERMINATED);
    expect(await run.started).toBeNull();
  });

  it('that is stopped before its supervisor could start it does not go to another', async () => {
    const under = run.under(supervisor, onStalled);
    run.stop();
    supervisor.report(TERMINATED);
    expect(await under).toBe('terminated');
    expect(await run.outcome).toEqual(TERMINATED);
  });

  it('that is gone together with its supervisor has ended', async () => {
    const under = run.under(supervisor, onStalled);
    supervisor.report({ event: 'started', ...NOBODY });
    expect(await run.started).toEqual(NOBODY);
    supervisor.report({ event: 'gone' });
    expect(await under).toBe('ended');
    expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
  });

  it('that cannot be ended may have survivors', async () => {
    void run.under(supervisor, onStalled);
    run.giveUp();
    expect(await run.outcome).toMatchObject({ why: 'unsupervised', survivors: true });
  });
});
