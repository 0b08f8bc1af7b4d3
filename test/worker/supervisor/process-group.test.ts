import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import { endGroup, processGroup } from '../../../src/worker/supervisor/process-group.ts';
import { killAtExit } from '../../support/process.ts';
import { until } from '../../support/until.ts';

it('a group is alive while a member is, and gone when it has ended', async () => {
  // The leader ends at once, and leaves a member behind.
  const leader = spawn('sh', ['-c', 'sleep 60 & exit 0'], { detached: true, stdio: 'ignore' });
  killAtExit(leader);
  await once(leader, 'exit');
  const group = processGroup(leader.pid ?? 0);
  expect(group.isAlive()).toBe(true);
  expect(await endGroup(group, 2_000, systemClock)).toBe(true);
  expect(group.isAlive()).toBe(false);
  group.signal('SIGTERM');
});

it('a member that ignores SIGTERM is killed when the grace is over', async () => {
  const script = 'trap "" TERM; echo ready; while :; do sleep 0.05; done';
  const leader = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  killAtExit(leader);
  await once(leader.stdout, 'data');
  const ended = once(leader, 'exit');
  expect(await endGroup(processGroup(leader.pid ?? 0), 50, systemClock)).toBe(true);
  expect((await ended)[1]).toBe('SIGKILL');
});

it('a group of zombies is not alive', async () => {
  // The leader's member is dead, and its parent, who is stopped, does not reap it.
  const script = 'sh -c "exit 0" & echo $!; kill -STOP $$';
  const parent = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  killAtExit(parent);
  const group = processGroup(parent.pid ?? 0);
  await once(parent.stdout, 'data');
  expect(group.isAlive()).toBe(true);
  parent.kill('SIGKILL');
  await until(() => !group.isAlive(), { what: 'only zombies to be left' });
});
