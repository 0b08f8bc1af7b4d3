import { beforeEach, describe, expect, it } from 'vitest';
import { commandPipeline } from '../../src/worker/pipelines/command.ts';
import type { PipelineEnd } from '../../src/worker/pipelines/pipeline.ts';
import type { CommandOutcome } from '../../src/worker/supervisor/commands.ts';
import type { GroupRecord } from '../../src/worker/supervisor/host.ts';
import type { CommandPipeline } from '../../src/worker/worker-options.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { FakeCommands } from './support/fake-commands.ts';
import { FakeHold, sessionFor } from './support/fake-hold.ts';

let clock: FakeClock;
let hold: FakeHold;
let commands: FakeCommands;
beforeEach(() => {
  clock = new FakeClock();
  hold = new FakeHold(clock);
  commands = new FakeCommands();
});

function start(option: Partial<CommandPipeline> = {}, session = sessionFor({})) {
  const command = { command: ['ffmpeg', '-i', 'x'], ...option };
  return commandPipeline(clock, commands, { command, graceMs: 700 })(session, hold);
}

type Ended = Extract<CommandOutcome, { event: 'ended' }>;
const RESULT = { code: 0, signal: null, survivors: false, output: ['last'] };
const ENDED: Ended = { event: 'ended', why: 'done', ...RESULT };

async function endWith(
  outcome: CommandOutcome,
  { isStopped = false, ...option }: Partial<CommandPipeline> & { isStopped?: boolean } = {},
): Promise<PipelineEnd> {
  const running = start(option);
  if (isStopped) running.stop();
  await clock.advance(250);
  commands.end(outcome);
  return running.ended;
}

describe('I-17 a command pipeline', () => {
  it('passes session, slot and fence to the command in its environment', async () => {
    const env = { MINE: '1', HOLDFAST_FENCE: 'not mine to say' };
    const running = start({ env, cwd: '/srv' });
    const group: GroupRecord = { group: 42, startedTicks: 4711 };
    expect(await running.started).toEqual(group);
    expect(commands.order).toEqual({
      command: ['ffmpeg', '-i', 'x'],
      env: {
        MINE: '1',
        HOLDFAST_SESSION_ID: 's-1',
        HOLDFAST_SESSION_KIND: 'live',
        HOLDFAST_SESSION_TYPE: 'stream.start',
        HOLDFAST_SESSION_TARGET: '1:0:19:2B66',
        HOLDFAST_SESSION_PROFILE: 'hd',
        HOLDFAST_SESSION_BUCKET: '0',
        HOLDFAST_SESSION_TENANT: 'acme',
        HOLDFAST_SLOT: '2',
        HOLDFAST_FENCE: '1234',
      },
      cwd: '/srv',
      deadline: hold.deadline(),
      graceMs: 700,
    });
  });

  it('passes the start of a recording, and no slot if it needs none', () => {
    const session = sessionFor({ kind: 'vod', type: 'vod.start', bucket: '10', startMs: 10_500 });
    const noSlot = Object.assign(hold, { slot: null });
    start({}, session);
    expect(noSlot.slot).toBeNull();
    expect(commands.order?.env.HOLDFAST_SESSION_START_MS).toBe('10500');
    expect(commands.order?.env).not.toHaveProperty('HOLDFAST_SLOT');
  });

  it('K-04 has its leases confirmed at once when its supervisor reports that the clocks disagree', () => {
    start();
    expect(hold.confirms).toBe(0);
    commands.doubt();
    expect(hold.confirms).toBe(1);
  });

  it('K-04 begins when it is told to, and not before', async () => {
    const running = start();
    await running.started;
    expect(commands.orders).toEqual([]);
    running.begin();
    expect(commands.orders).toEqual([['begin']]);
  });

  it('extends its command when a lease was renewed, and passes progress on', () => {
    const running = start();
    hold.validMs = 20_000;
    running.extend();
    expect(commands.orders).toEqual([['extend', hold.deadline()]]);
    commands.progress('frame 7');
    expect(hold.reported).toEqual(['frame 7']);
  });

  it('has completed when its command exits with 0', async () => {
    expect(await endWith(ENDED)).toEqual({
      how: 'completed',
      isGone: true,
      detail: { tookMs: 250, code: 0, signal: null, output: ['last'] },
    });
  });

  it.each([
    ['ends with another code', { code: 3 }, 'the command ended with exit code 3'],
    ['is ended by a signal', { code: null, signal: 'SIGSEGV' }, 'the command was ended by SIGSEGV'],
    [
      'loses its supervisor',
      { why: 'unsupervised', code: null },
      /supervisor process was killed or suspended/,
    ],
    [
      'has a supervisor that is told to end',
      { why: 'terminated' },
      /supervisor process was told to end/,
    ],
  ] as const)('has failed when its command %s', async (_, outcome, error) => {
    const end = await endWith({ ...ENDED, ...outcome });
    expect(end).toMatchObject({ how: 'failed', isGone: true, detail: { output: ['last'] } });
    expect(end.detail.error).toMatch(error);
  });

  it.each([
    ['ENOENT', {}, "'ffmpeg' was not found. Check its name, and PATH"],
    ['ENOENT', { cwd: '/none' }, "…, and PATH, and that the directory '/none' exists"],
    ['EACCES', {}, "'ffmpeg' cannot be executed (EACCES). Check that it is a program, …"],
    ['EMFILE', {}, "'ffmpeg' could not be started (EMFILE): the host is out of processes, …"],
    ['CLOSED', {}, 'the command was not started, because the worker is stopping'],
  ])(
    'has failed when its command cannot be started (%s), and says what to do',
    async (error, option, text) => {
      const end = await endWith({ event: 'failed', error }, option);
      expect(end).toMatchObject({ how: 'failed', isGone: true });
      const [from = '', to] = text.split('…');
      expect(end.detail.error?.startsWith(from)).toBe(true);
      if (from === '') expect(end.detail.error?.endsWith(to ?? '')).toBe(true);
    },
  );

  it.each([
    ['a code', { ...ENDED, code: 255 }],
    ['a signal', { ...ENDED, why: 'ordered', code: null, signal: 'SIGTERM' }],
    ['0', ENDED],
    ['not having been started', { event: 'failed', error: 'ENOENT' }],
  ] as const)('was stopped when it was told to end and did so with %s', async (_, outcome) => {
    expect(await endWith(outcome, { isStopped: true })).toMatchObject({
      how: 'stopped',
      isGone: true,
    });
    expect(commands.orders).toEqual([['stop']]);
  });

  it('was stopped when its lease was lost, even without a call of stop', async () => {
    hold.abort();
    expect(await endWith({ ...ENDED, code: 1 })).toMatchObject({ how: 'stopped' });
    const end = await endWith({ ...ENDED, why: 'deadline', code: null, signal: 'SIGTERM' });
    expect(end).toMatchObject({ how: 'stopped' });
  });

  it('reports processes that could not be ended', async () => {
    const end = await endWith({ ...ENDED, survivors: true }, { isStopped: true });
    expect(end).toMatchObject({ how: 'stopped', isGone: false });
    expect(end.detail.error).toMatch(/could not be ended/);
  });
});
