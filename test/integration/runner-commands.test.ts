import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder } from './support/cli.ts';
import {
  areRunning,
  commandGround,
  isAlive,
  overlapsIn,
  TTL_MS,
} from './support/command-ground.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();
vi.setConfig({ testTimeout: 60_000 });

describe('holdfast up with a command for all targets', () => {
  it('B-04 runs one for each target, with its data and fence and without our secrets; kill -9 leaves none, and another instance takes over', async () => {
    const { url, records, alive, start: startWith, run } = commandGround();
    const start = () => startWith((script) => ({ command: [script, 'plain'] }));
    const holdfast = await open(url, { quarantine: 'off' });
    await holdfast.targets.addAll([1, 2, 3, 4].map((number) => ({ id: `t${number}`, number })));
    const first = start();
    await until(() => areRunning(alive(), 4), { what: 'four commands', deadlineMs: 15_000 });
    for (const { target, json, store } of records()) {
      expect(json).toMatchObject({ id: target, number: Number(target.slice(1)) });
      expect(store).toBe('none');
    }
    const before = records();
    first.signal('SIGKILL');
    const areGone = () => before.every(({ pid, child }) => !isAlive(pid) && !isAlive(child));
    await until(areGone, { what: 'the commands to be gone', deadlineMs: TTL_MS });
    const second = start();
    await until(() => areRunning(alive(), 4), { what: 'four again', deadlineMs: 20_000 });
    const fences = new Map(before.map(({ target, fence }) => [target, fence]));
    for (const { target, fence } of alive()) expect(fence).toBeGreaterThan(fences.get(target) ?? 0);
    const shown = await run('targets', 'ls', '--json');
    expect(JSON.parse(shown.stdout)).toMatchObject([1, 2, 3, 4].map(() => ({ state: 'running' })));
    second.signal('SIGTERM');
    expect(await second.end()).toMatchObject({ code: 0 });
    expect(alive()).toEqual([]);
    await holdfast.close();
  });

  it('B-04 ends the commands of a frozen instance before another instance has their targets', async () => {
    const { url, alive, start: startWith } = commandGround();
    const start = () => startWith((script) => ({ command: [script, 'stubborn'] }));
    const holdfast = await open(url, { quarantine: 'off' });
    await holdfast.targets.addAll([{ id: 'a' }, { id: 'b' }]);
    const first = start();
    await until(() => areRunning(alive(), 2), { what: 'two commands', deadlineMs: 15_000 });
    const old = new Set(alive().map(({ pid }) => pid));
    first.signal('SIGSTOP');
    const second = start();
    const overlaps: string[] = [];
    const haveMoved = () => {
      const now = alive();
      overlaps.push(...overlapsIn(now));
      return areRunning(now, 2) && now.every(({ pid }) => !old.has(pid));
    };
    await until(haveMoved, { what: 'both at the other', deadlineMs: 20_000 });
    expect(overlaps).toEqual([]);
    first.signal('SIGCONT');
    for (const one of [first, second]) one.signal('SIGTERM');
    await Promise.all([first.end(), second.end()]);
    expect(alive()).toEqual([]);
    await holdfast.close();
  });

  it('B-04 refuses a configuration that polls and runs, and names the field', async () => {
    const config = join(privateFolder(), 'holdfast.config.mjs');
    writeFileSync(config, `export default { poll: () => {}, runner: { command: ['true'] } };`);
    const { code, stderr } = await cli(['up', '--config', config]);
    expect(code).toBe(78);
    expect(stderr).toMatch(/runner.*polls targets or runs them/);
  });
});
