import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder, startCli } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();
vi.setConfig({ testTimeout: 60_000 });

const TTL_MS = 3_000;

/** Writes who it is, and runs until it is told to stop. It ignores SIGTERM if `stubborn` says so. */
const SCRIPT = `#!/bin/sh
if [ "$1" = stubborn ]; then trap '' TERM; fi
echo "$$ $HOLDFAST_TARGET $HOLDFAST_FENCE \${HOLDFAST_STORE:-none} $HOLDFAST_TARGET_JSON" >> "$RUNS"
while true; do echo '::progress'; sleep 0.1; done
`;

interface CommandRecord {
  readonly pid: number;
  readonly target: string;
  readonly fence: number;
  readonly store: string;
  readonly json: { readonly id: string; readonly number?: number };
}

function ground(word = 'plain') {
  const folder = privateFolder();
  const runs = join(folder, 'runs.txt');
  const script = join(folder, 'task.sh');
  const config = join(folder, 'holdfast.config.mjs');
  const url = `sqlite:${join(folder, 'holdfast.db')}`;
  writeFileSync(script, SCRIPT, { mode: 0o755 });
  writeFileSync(
    config,
    `export default {
  roles: ['poller'],
  ttl: ${TTL_MS},
  runner: { command: ['${script}', '${word}'], env: { RUNS: '${runs}' }, grace: 300, stuckAfter: '5s', backoff: '100ms..1s' },
};
`,
  );
  const records = (): CommandRecord[] => {
    if (!existsSync(runs)) return [];
    const lines = readFileSync(runs, 'utf8').trim().split('\n');
    return lines.map((line) => {
      const [pid, target = '', fence, store = '', ...json] = line.split(' ');
      const parsed = JSON.parse(json.join(' '));
      return { pid: Number(pid), target, fence: Number(fence), store, json: parsed };
    });
  };
  const alive = () => records().filter(({ pid }) => isAlive(pid));
  const start = () => startCli(['up', '--config', config], { at: { url } });
  return { url, records, alive, start, config };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Each target is run by one process. */
function areRunning(alive: readonly CommandRecord[], count: number): boolean {
  return alive.length === count && new Set(alive.map(({ target }) => target)).size === count;
}

describe('holdfast up with a command per target', () => {
  it('B-04 runs one for each target, with its data and fence and without our secrets; kill -9 leaves none, and another instance takes over', async () => {
    const { url, records, alive, start } = ground();
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
    const areGone = () => before.every(({ pid }) => !isAlive(pid));
    await until(areGone, { what: 'the commands to be gone', deadlineMs: TTL_MS });
    const second = start();
    await until(() => areRunning(alive(), 4), { what: 'four again', deadlineMs: 20_000 });
    const fences = new Map(before.map(({ target, fence }) => [target, fence]));
    for (const { target, fence } of alive()) expect(fence).toBeGreaterThan(fences.get(target) ?? 0);
    const shown = await cli(['targets', 'ls', '--json'], { at: { url } });
    expect(JSON.parse(shown.stdout)).toMatchObject([1, 2, 3, 4].map(() => ({ state: 'running' })));
    second.signal('SIGTERM');
    expect(await second.end()).toMatchObject({ code: 0 });
    expect(alive()).toEqual([]);
    await holdfast.close();
  });

  it('B-04 ends the commands of a frozen instance before another instance has their targets', async () => {
    const { url, alive, start } = ground('stubborn');
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
      const targets = now.map(({ target }) => target);
      if (new Set(targets).size < targets.length) overlaps.push(JSON.stringify(now));
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
    const { url, config } = ground();
    const text = readFileSync(config, 'utf8').replace('ttl:', 'poll: () => {}, ttl:');
    writeFileSync(config, text);
    const { code, stderr } = await cli(['up', '--config', config], { at: { url } });
    expect(code).toBe(78);
    expect(stderr).toMatch(/runner.*polls targets or runs them/);
  });
});
