import { expect, it } from 'vitest';
import { systemClock as clock } from '../../src/core/clock.ts';
import type * as CommandsModule from '../../src/worker/supervisor/commands.ts';
import { statOf } from '../../src/worker/supervisor/proc.ts';
import type * as ProcessModule from '../../src/worker/supervisor/supervisor-process.ts';
import { until } from '../support/until.ts';
import { cli } from './support/cli.ts';
import { inMs, supervisors } from './support/commands.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();

const FOLDER = '../../dist/worker/supervisor';
const { startEarly } = (await import(`${FOLDER}/supervisor-process.js`)) as typeof ProcessModule;
const { supervisedCommands } = (await import(`${FOLDER}/commands.js`)) as typeof CommandsModule;

/** The process that `startEarly` starts. */
function earlySupervisor(): number {
  const before = supervisors();
  startEarly();
  return supervisors().find((pid) => !before.includes(pid)) ?? 0;
}

it('K-13 a supervisor that was started early runs the first command, and the next owner gets another', async () => {
  const early = earlySupervisor();
  const commands = supervisedCommands(clock, { isInherited: true });
  expect(supervisors()).toEqual([early]);
  const other = supervisedCommands(clock, { isInherited: true });
  expect(supervisors()).toHaveLength(2);
  const run = commands.run({ command: ['true'], env: {}, deadline: inMs(60_000), graceMs: 500 });
  void run.started.then(() => run.begin());
  expect(await run.outcome).toMatchObject({ event: 'ended', why: 'done', code: 0 });
  await Promise.all([commands.close(), other.close()]);
  expect(supervisors()).toEqual([]);
});

it('K-13 a supervisor that died before its owner was there runs nothing, and the next command runs', async () => {
  const early = earlySupervisor();
  process.kill(early, 'SIGKILL');
  await until(() => statOf(early) === null, { what: 'the early supervisor to be gone' });
  const commands = supervisedCommands(clock, { isInherited: true });
  const order = { command: ['true'], env: {}, deadline: inMs(60_000), graceMs: 500 };
  const first = commands.run(order);
  expect(await first.outcome).toMatchObject({ why: 'unsupervised', survivors: false });
  const second = commands.run(order);
  void second.started.then(() => second.begin());
  expect(await second.outcome).toMatchObject({ why: 'done', code: 0 });
  await commands.close();
});

it('K-13 holdfast run with wrong arguments leaves no early supervisor behind', async () => {
  // The supervisor has the outputs of the command: they are closed when it is gone, too.
  const refused = await cli(['run', 'key', '--no-such-option', '--', 'true']);
  expect(refused).toMatchObject({ code: 64, stdout: '' });
  const json = await cli(['run', 'key', '--slots', 'many', '--', 'true']);
  expect(json).toMatchObject({ code: 64, stdout: '' });
});
