import cron from 'node-cron';
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryStore, type Holdfast, open } from '../src/index.ts';
import { runCoordinator } from '../src/node-cron/index.ts';
import { until } from './support/until.ts';

const FIRE = 'mails:2026-11-18T03:00:00.000Z';
const opened: Holdfast[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((holdfast) => holdfast.close()));
});

async function instances(count: number): Promise<Holdfast[]> {
  const store = createMemoryStore();
  for (let i = 0; i < count; i++) opened.push(await open(store));
  return [...opened];
}

describe('the run coordinator of node-cron', () => {
  it('B-09 lets one of three instances run a fire, and holds its lease until the task has ended', async () => {
    const holdfasts = await instances(3);
    const coordinators = holdfasts.map((one) => runCoordinator(one, { per: '1d' }));
    const answers = await Promise.all(coordinators.map((one) => one.shouldRun(FIRE)));
    expect(answers.filter(Boolean)).toHaveLength(1);
    const runner = answers.indexOf(true);
    expect(holdfasts.map(({ held }) => held)).toEqual(answers.map(Number));
    await coordinators[runner]?.onComplete(FIRE);
    expect(holdfasts[runner]?.held).toBe(0);
    for (const one of coordinators) expect(await one.shouldRun(FIRE)).toBe(false);
  });

  it('B-09 takes the end of a fire that it did not run for nothing', async () => {
    const [holdfast] = await instances(1);
    const { onComplete } = runCoordinator(holdfast as Holdfast, { per: '1d' });
    await expect(onComplete(FIRE)).resolves.toBeUndefined();
  });

  it('B-09 is asked by node-cron itself: of two tasks, one runs a fire and the other skips it', async () => {
    const said: string[] = [];
    const tasks = (await instances(2)).map((holdfast) => {
      const task = cron.schedule('* * * * * *', () => void said.push('ran'), {
        name: 'mails',
        distributed: true,
        maxExecutions: 1,
        runCoordinator: runCoordinator(holdfast, { per: '1h' }),
      });
      task.on('execution:skipped', ({ reason }) => void said.push(`skipped: ${reason}`));
      return task;
    });
    await until(() => said.includes('ran') && said.includes('skipped: not-elected'), {
      what: 'a fire of both tasks',
    });
    expect(said.filter((word) => word === 'ran')).toHaveLength(1);
    for (const task of tasks) await task.destroy();
  });

  it.each([
    ['what is no Holdfast', {}, { per: '1d' }, 'holdfast is an object: it has to be what `open`'],
    ['an unknown option', undefined, { per: '1d', pr: 1 }, 'pr is 1: unknown option'],
    ['a period that is none', undefined, { per: 'daily' }, 'per is "daily": a duration is'],
  ])('B-09 refuses %s', async (_what, given, options, message) => {
    const [holdfast] = await instances(1);
    expect(() => runCoordinator((given ?? holdfast) as Holdfast, options)).toThrow(message);
  });
});
