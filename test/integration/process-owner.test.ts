import { describe, expect, it } from 'vitest';
import { systemHost } from '../../src/worker/supervisor/system-host.ts';
import { type Child, spawnChild } from '../support/child.ts';
import { hostMs } from '../support/host-clock.ts';
import { until } from '../support/until.ts';
import { Ticker } from './support/cli.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';

leaveNothingBehind();

const GRACE_MS = 400;
const VALID_MS = 1_500;
/** How late a timer may be on a machine that does other things as well; part of what the guard is for. */
const LATE_MS = 500;

interface Scene {
  readonly owner: Child;
  readonly tickers: readonly Ticker[];
  readonly name: string;
}

async function play(name: string): Promise<Scene> {
  const tickers = [1, 2, 3].map((n) => new Ticker(`${name}-${n}`, 'stubborn'));
  const commands = tickers.map(({ command }) => command);
  const options = { name, validMs: VALID_MS, graceMs: GRACE_MS, commands };
  const owner = spawnChild('command-owner.mjs', { args: [JSON.stringify(options)] });
  await Promise.all(tickers.map((ticker) => ticker.runs()));
  return { owner, tickers, name };
}

const lastMs = ({ tickers }: Scene) => Math.max(...tickers.map((ticker) => ticker.lastMs));

describe.concurrent('I-17 commands end before their leases can be another’s, when who owns them', () => {
  it('I-12 is killed with -9; and the lock on its name is free as soon as they are dead, and not before', async () => {
    const scene = await play(`killed ${process.pid}`);
    await using owner = scene.owner;
    owner.signal('SIGKILL');
    const killedMs = hostMs();
    const takes: number[] = [];
    const lock = await until(
      async () => {
        takes.push(hostMs());
        return systemHost.lock(scene.name);
      },
      { what: 'the lock to be free', every: 1 },
    );
    const last = lastMs(scene);
    lock.close();
    // It was asked for while the supervisor ended the commands, and was not to be had.
    expect(takes.length).toBeGreaterThan(5);
    expect(last).toBeLessThan(takes.at(-1) ?? 0);
    expect(last).toBeGreaterThan(killedMs + GRACE_MS / 2);
    expect(last).toBeLessThan(killedMs + GRACE_MS + LATE_MS);
    expect((takes.at(-1) ?? 0) - last).toBeLessThan(LATE_MS);
    for (const ticker of scene.tickers) expect(ticker.lines).toContain('SIGTERM');
    expect(lastMs(scene)).toBe(last);
  });

  it('stands still; it is told when it wakes, and has its lock all the time', async () => {
    const scene = await play(`frozen ${process.pid}`);
    await using owner = scene.owner;
    await owner.freeze();
    const frozenMs = hostMs();
    await until(() => hostMs() > frozenMs + VALID_MS + GRACE_MS + LATE_MS, { what: 'their end' });
    const last = lastMs(scene);
    expect(last).toBeGreaterThan(frozenMs + VALID_MS / 2);
    expect(last).toBeLessThan(frozenMs + VALID_MS + GRACE_MS + LATE_MS);
    expect(await systemHost.lock(scene.name)).toBeNull();
    await owner.thaw();
    for (const _ of scene.tickers) {
      const ended = await owner.next('ended');
      expect(ended).toMatchObject({ why: 'deadline', signal: 'SIGKILL', survivors: false });
    }
    await owner.next('closed');
    expect(await owner.exit()).toMatchObject({ code: 0 });
    expect(lastMs(scene)).toBe(last);
  });

  it('I-12 has its name, a second process of the same is refused', async () => {
    const scene = await play(`twice ${process.pid}`);
    await using _ = scene.owner;
    const options = { name: scene.name, validMs: VALID_MS, graceMs: GRACE_MS, commands: [] };
    await using second = spawnChild('command-owner.mjs', { args: [JSON.stringify(options)] });
    await second.next('taken');
  });
});
