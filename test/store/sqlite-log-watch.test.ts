import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogWatch } from '../../src/store/sqlite/file/log-watch.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { until } from '../support/until.ts';

let folder: string;
let path: string;
let clock: FakeClock;
let told: number;
let watch: LogWatch;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-log-'));
  path = join(folder, 'one.db');
  clock = new FakeClock();
  told = 0;
  watch = new LogWatch(clock, path, () => told++);
});
afterEach(() => {
  watch.close();
  rmSync(folder, { recursive: true });
});

function write(): void {
  appendFileSync(`${path}-wal`, 'x');
}

/** The kernel has said so: now it is a matter of our own clock. */
async function heard(): Promise<void> {
  await until(() => clock.pendingTimers > 0, { what: 'the kernel' });
}

describe('the watch on the log of a database', () => {
  it('tells of a write by anybody, a moment later', async () => {
    writeFileSync(`${path}-wal`, '');
    watch.open();
    write();
    await heard();
    expect(told).toBe(0);
    await clock.advance(1);
    expect(told).toBe(1);
  });

  it('tells of many writes once, and not again before five milliseconds are over', async () => {
    writeFileSync(`${path}-wal`, '');
    watch.open();
    for (let n = 0; n < 20; n++) write();
    await heard();
    await clock.advance(1);
    write();
    await heard();
    await clock.advance(4);
    expect(told).toBe(1);
    await clock.advance(1);
    expect(told).toBe(2);
  });

  it('says nothing where there is no log, and nothing more once it is closed', async () => {
    watch.open();
    expect(watch.isWatching).toBe(false);
    writeFileSync(`${path}-wal`, '');
    watch.open();
    expect(watch.isWatching).toBe(true);
    write();
    await heard();
    watch.close();
    await clock.advance(100);
    expect({ told, isWatching: watch.isWatching }).toEqual({ told: 0, isWatching: false });
  });
});
