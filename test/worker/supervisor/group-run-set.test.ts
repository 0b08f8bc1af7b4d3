import { beforeEach, expect, it } from 'vitest';
import type { Spawn, SpawnListener } from '../../../src/worker/supervisor/group-run.ts';
import { GroupRunSet } from '../../../src/worker/supervisor/group-run-set.ts';
import type { About, Report } from '../../../src/worker/supervisor/orders.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { deadlineIn } from '../../support/deadline-in.ts';

let clock: FakeClock;
let supervisions: GroupRunSet;
let reports: About<Report>[];
let left: number;
/** By the name of each command. */
let running: Map<string, { on: SpawnListener; isAlive: boolean; signals: string[] }>;

beforeEach(() => {
  clock = new FakeClock();
  reports = [];
  left = 0;
  running = new Map();
  const spawn: Spawn = ({ command: [name = ''] }, on) => {
    const command = { on, isAlive: true, signals: [] as string[] };
    running.set(name, command);
    const processes = {
      isAlive: () => command.isAlive,
      signal: (signal: string) => void command.signals.push(signal),
    };
    const endOutput = () => [name];
    return { group: running.size, startedTicks: null, processes, endOutput, begin: () => {} };
  };
  supervisions = new GroupRunSet(
    clock,
    spawn,
    (report) => void reports.push(report),
    () => {
      left += 1;
    },
  );
});

function start(id: number, name: string, validMs = 1_000): void {
  const deadline = deadlineIn(clock, validMs);
  const what = { command: [name], env: {}, deadline, graceMs: 100, isInherited: false };
  supervisions.receive({ id, do: 'start', ...what });
}

function end(name: string): void {
  const command = running.get(name);
  if (command === undefined) throw new Error(`${name} does not run`);
  command.isAlive = false;
  command.on.onExit({ code: 0, signal: null });
  command.on.onRead();
}

const ends = () => reports.filter(({ event }) => event === 'ended');

it('each command has its own deadline, and its reports have its number', async () => {
  start(1, 'short');
  start(2, 'long', 5_000);
  running.get('short')?.on.onProgress('half');
  expect(reports.at(-1)).toEqual({ id: 1, event: 'progress', text: 'half' });
  await clock.advance(1_000);
  expect(running.get('short')?.signals).toContain('SIGTERM');
  expect(running.get('long')?.signals).toEqual([]);
  end('short');
  expect(ends()).toMatchObject([{ id: 1, why: 'deadline', output: ['short'] }]);
  supervisions.receive({ id: 2, do: 'stop' });
  end('long');
  expect(ends()).toMatchObject([{ id: 1 }, { id: 2, why: 'ordered' }]);
  expect(left).toBe(0);
});

it('orders for a command that has ended, or was never started, are ignored', () => {
  supervisions.receive({ id: 7, do: 'stop' });
  start(1, 'one');
  start(1, 'one again');
  end('one');
  supervisions.receive({ id: 1, do: 'signal', signal: 'SIGHUP' });
  expect([...running.keys()]).toEqual(['one']);
  expect(running.get('one')?.signals).toEqual([]);
  expect(ends()).toHaveLength(1);
});

it('leaves when its owner is gone and nothing runs, not before', async () => {
  start(1, 'one');
  start(2, 'two');
  supervisions.orphan();
  for (const { signals } of running.values()) expect(signals).toEqual(['SIGTERM', 'SIGCONT']);
  end('one');
  expect(left).toBe(0);
  await clock.advance(100);
  expect(running.get('two')?.signals).toContain('SIGKILL');
  end('two');
  expect(left).toBe(1);
  expect(ends()).toMatchObject([
    { id: 1, why: 'orphaned' },
    { id: 2, why: 'orphaned' },
  ]);
});

it('leaves at once when its owner is gone and nothing runs', () => {
  supervisions.orphan();
  expect(left).toBe(1);
});

it('told to end, it ends its commands, starts none, and reports that while its owner is there', () => {
  start(1, 'one');
  supervisions.terminate();
  end('one');
  start(2, 'two');
  expect(ends()).toMatchObject([
    { id: 1, why: 'terminated', code: 0 },
    { id: 2, why: 'terminated', code: null, signal: null },
  ]);
  expect(running.has('two')).toBe(false);
  expect(left).toBe(0);
  supervisions.orphan();
  expect(left).toBe(1);
});
