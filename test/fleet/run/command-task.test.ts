import { expect, it } from 'vitest';
import { commandTasks } from '../../../src/command-task.ts';
import { Runner, type RunnerOptions } from '../../../src/fleet/runner.ts';
import { TargetStore } from '../../../src/fleet/targets/target-store.ts';
import { Leases } from '../../../src/lease/leases.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { DEFAULT_MAX_TTLS } from '../../../src/store/port/keyspaces.ts';
import { leftMs } from '../../../src/worker/supervisor/command-deadline.ts';
import type {
  CommandOrder,
  CommandOutcome,
  CommandRun,
  Commands,
} from '../../../src/worker/supervisor/commands.ts';
import type { GroupRecord } from '../../../src/worker/supervisor/host.ts';
import { FakeClock } from '../../../testing/fakes/fake-clock.ts';
import { testRuntime } from '../../support/test-runtime.ts';

const GROUP: GroupRecord = { group: 4_711, startedTicks: null };
const ENDED = { event: 'ended', why: 'done', code: 0, signal: null, output: [] } as const;
const TTL_MS = 3_000;
/** Of a command with this TTL; its owner reports one that takes longer. */
const STOP_MS = 2_000;

/** A command whose processes the test plays. */
class PlayedRun implements CommandRun {
  readonly order: CommandOrder;
  readonly said: string[] = [];
  deadline: CommandOrder['deadline'];
  start: (group: GroupRecord | null) => void = () => {};
  end: (outcome: CommandOutcome) => void = () => {};
  progress: (text: string) => void = () => {};
  readonly started = new Promise<GroupRecord | null>((resolve) => {
    this.start = resolve;
  });
  readonly outcome = new Promise<CommandOutcome>((resolve) => {
    this.end = resolve;
  });

  constructor(order: CommandOrder) {
    this.order = order;
    this.deadline = order.deadline;
  }

  begin(): void {
    this.said.push('begin');
  }
  stop(): void {
    this.said.push('stop');
  }
  signal(): void {}
  extend(deadline: CommandOrder['deadline']): void {
    this.deadline = deadline;
  }
  onProgress(listener: (text: string) => void): void {
    this.progress = listener;
  }
  onDoubt(): void {}
}

/** A target with a command, the one instance that owns it, and the command as it was started. */
async function ownedCommand(given: Partial<RunnerOptions> = {}) {
  const clock = new FakeClock();
  const rt = testRuntime({ clock, store: createMemoryStore({ clock }) });
  const runs: PlayedRun[] = [];
  const commands: Commands = {
    run(order) {
      const run = new PlayedRun(order);
      runs.push(run);
      return run;
    },
    close: async () => {},
  };
  const happened: string[] = [];
  for (const event of ['run.stuck', 'run.silent', 'lease.released', 'lease.abandoned'] as const)
    rt.events.on(event, () => happened.push(event));
  rt.events.on('run.exited', ({ why }) => happened.push(`run.exited: ${why}`));
  const environment = {
    targetIds: 'any' as const,
    commandTasks: (options: Parameters<typeof commandTasks>[1]) =>
      commandTasks(rt, options, () => commands),
  };
  const own = { commands: { sync: ['sync.sh'] }, ttl: TTL_MS, discovery: 'off' } as const;
  const options: RunnerOptions = { ...own, ...given };
  const runner = new Runner(rt, new Leases(rt, DEFAULT_MAX_TTLS), environment, options);
  await new TargetStore(rt).add({ id: 'a', command: 'sync', data: { n: 1 } });
  const starting = runner.start();
  await clock.advance(TTL_MS);
  await starting;
  const [run] = runs;
  if (run === undefined) throw new Error('no command was started');
  return { clock, runner, runs, run, happened };
}

it('B-04 a command has its target, and begins when its process group is known', async () => {
  const { clock, run } = await ownedCommand();
  expect(run.order).toMatchObject({ command: ['sync.sh'], env: { HOLDFAST_TARGET: 'a' } });
  const { HOLDFAST_TARGET_JSON: json = '', HOLDFAST_FENCE: fence } = run.order.env;
  expect(JSON.parse(json)).toMatchObject({ id: 'a', data: { n: 1 } });
  expect(Number(fence)).toBeGreaterThan(0);
  expect(run.said).toEqual([]);
  run.start(GROUP);
  await clock.advance(0);
  expect(run.said).toEqual(['begin']);
});

it('B-04 every renewal extends the deadline of a command', async () => {
  const { clock, run } = await ownedCommand();
  run.start(GROUP);
  for (let i = 0; i < 30; i++) {
    await clock.advance(TTL_MS / 3);
    expect(leftMs(run.deadline, clock)).toBeGreaterThan(0);
  }
});

it('B-04 a command that is told to stop keeps its lease until nothing of it is left', async () => {
  const { clock, runner, run, happened } = await ownedCommand();
  run.start(GROUP);
  await clock.advance(0);
  const stopping = runner.stop();
  await clock.advance(10);
  expect(run.said).toEqual(['begin', 'stop']);
  expect(happened).toEqual([]);
  run.end({ ...ENDED, survivors: false });
  await clock.advance(10);
  await stopping;
  expect(happened).toEqual(['lease.released']);
});

it('B-04 a target is not handed over while processes of its command cannot be ended', async () => {
  const { clock, runner, run, happened } = await ownedCommand();
  run.start(GROUP);
  await clock.advance(0);
  const stopping = runner.stop({ within: STOP_MS });
  await clock.advance(10);
  run.end({ ...ENDED, survivors: true });
  await clock.advance(STOP_MS + 2 * TTL_MS);
  await stopping;
  expect(happened).toContain('run.stuck');
  expect(happened).not.toContain('lease.released');
});

it('B-04 a command that is told to stop before it has processes never begins', async () => {
  const { clock, runner, run } = await ownedCommand();
  const stopping = runner.stop();
  await clock.advance(10);
  run.start(GROUP);
  await clock.advance(0);
  expect(run.said).toEqual(['stop']);
  run.end({ ...ENDED, survivors: false });
  await clock.advance(10);
  await stopping;
});

it('B-04 a command that fails is started again after a pause', async () => {
  const { clock, runs, run, happened } = await ownedCommand();
  run.start(GROUP);
  run.end({ ...ENDED, code: 3, survivors: false });
  await clock.advance(0);
  expect(runs).toHaveLength(1);
  await clock.advance(1_500);
  expect(happened).toEqual([expect.stringMatching(/^run\.exited: .*3/)]);
  expect(runs).toHaveLength(2);
});

it('B-04 a line of progress counts as progress of the task', async () => {
  const { clock, run, happened } = await ownedCommand({ stuckAfter: 2 * TTL_MS });
  run.start(GROUP);
  for (let i = 0; i < 10; i++) {
    run.progress('10 %');
    await clock.advance(TTL_MS / 2);
  }
  expect(happened).toEqual([]);
  await clock.advance(3 * TTL_MS);
  expect(happened).toEqual(['run.silent']);
});
