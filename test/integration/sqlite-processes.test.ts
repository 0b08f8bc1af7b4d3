import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { type Child, spawnChild } from '../support/child.ts';
import { codeOf, leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT } from './support/lease-watch.ts';
import { startLessee } from './support/lessee.ts';

leaveNothingBehind();

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(root, { recursive: true }));
let made = 0;
const newFile = () => join(root, `${made++}.db`);

/** Starts a child on a file, and waits until it is ready. */
async function start(script: string, ...args: string[]): Promise<Child> {
  const child = spawnChild(script, { args });
  await child.next('ready', 20_000);
  return child;
}

/** How long the event loop of this process has been kept from turning, at worst, since it was begun. */
function watchLoop(): () => number {
  let worstMs = 0;
  let lastMs = hostMs();
  const timer = setInterval(() => {
    worstMs = Math.max(worstMs, hostMs() - lastMs);
    lastMs = hostMs();
  }, 1);
  return () => {
    clearInterval(timer);
    return worstMs;
  };
}

describe('processes that want the same key', () => {
  it('K-01 K-10 K-02 one wins the race; then each has it once, with rising fences', async () => {
    const url = `sqlite:${newFile()}`;
    const racers = await Promise.all(Array.from({ length: 6 }, () => start('racer.mjs', url, 'k')));
    const options = { ttl: '20s' };
    const tellAll = (command: { do: string; [fact: string]: unknown }) => {
      for (const racer of racers) racer.send(command);
      return Promise.all(racers.map((racer) => racer.next(command.do, 20_000)));
    };
    const answers = await tellAll({ do: 'race', atMs: hostMs() + 100, options });
    const winners = answers.filter(({ ok }) => ok);
    expect(winners).toHaveLength(1);
    expect(new Set(answers.map(({ fence }) => fence))).toEqual(new Set([winners[0]?.fence]));
    const turns = await tellAll({ do: 'queue', options });
    turns.sort((a, b) => Number(a.fromMs) - Number(b.fromMs));
    expect(turns.filter(({ ok, held, released }) => ok && held && released)).toHaveLength(6);
    expectRising(turns.map(({ fence }) => Number(fence)));
    const isEarly = (turn: (typeof turns)[0], i: number) =>
      i > 0 && Number(turn.fromMs) < Number(turns[i - 1]?.toMs);
    expect(turns.filter(isEarly)).toEqual([]);
    await tellAll({ do: 'close' });
    const ends = await Promise.all(racers.map((racer) => racer.exit()));
    expect(ends).toEqual(Array(6).fill({ code: 0, signal: null }));
  });

  it('K-10 a waiter in another process is woken by the release, long before the expiry', async () => {
    const url = `sqlite:${newFile()}`;
    await using holdfast = await openAt({ url });
    await using waiter = await startLessee(url);
    const lease = await take(holdfast, 'k', { ttl: '30s' });
    const asked = waiter.tell('acquire', { key: 'k', options: { wait: '20s' } });
    await expect.poll(() => waits(url, 'lease:k')).toBe(1);
    const releasedMs = hostMs();
    await lease.release();
    const { ok, gotMs } = await asked;
    expect(ok).toBe(true);
    // Looked for every 25 ms; the rest is for a busy machine.
    expect(Number(gotMs) - releasedMs).toBeLessThan(1_000);
  });

  it('K-10 a waiter that was killed is passed over for the next in line', async () => {
    const url = `sqlite:${newFile()}`;
    await using holdfast = await openAt({ url });
    await using first = await startLessee(url);
    await using second = await startLessee(url);
    const lease = await take(holdfast, 'k', { ttl: '30s' });
    first.child.send({ do: 'acquire', key: 'k', options: { wait: '20s' } });
    await expect.poll(() => waits(url, 'lease:k')).toBe(1);
    const asked = second.tell('acquire', { key: 'k', options: { wait: '20s' } });
    await expect.poll(() => waits(url, 'lease:k')).toBe(2);
    await first.child.kill();
    const releasedMs = hostMs();
    await lease.release();
    const { ok, gotMs } = await asked;
    expect(ok).toBe(true);
    expect(Number(gotMs) - releasedMs).toBeLessThan(1_000);
  });
});

/** How many stand in line for a key. */
function waits(url: string, key: string): number {
  const db = new SqliteConnection(url.slice('sqlite:'.length));
  const [count = 0] = db.row<[number]>('SELECT count(*) FROM lines WHERE key = ?', key) ?? [];
  db.close();
  return count;
}

describe('a process that is stopped while it holds the lock of the file', () => {
  it('K-07 K-03 delays calls up to their time, stops no event loop, and all goes on after it', async () => {
    const path = newFile();
    const url = `sqlite:${path}`;
    await using holdfast = await openAt({ url });
    const lease = await take(holdfast, 'held', {
      ttl: 6_000,
      renewEvery: 300,
      operationTimeout: 800,
    });
    using watch = new LeaseWatch(lease);
    await using locker = await start('file-locker.mjs', path);
    locker.send({ do: 'lock' });
    await locker.next('lock');
    await locker.freeze();
    const worstMs = watchLoop();
    const askedMs = hostMs();
    const asked = await Promise.all(
      ['a', 'b'].map((key) => codeOf(holdfast.acquire(key, { operationTimeout: 700 }))),
    );
    const tookMs = hostMs() - askedMs;
    // The very first opening must not wait inside SQLite, either; nor does reading need the lock.
    const opening = openAt({ url });
    opening.catch(() => {});
    expect(await holdfast.inspect('held')).toMatchObject({ kind: 'held' });
    expect(asked).toEqual(['STORE_UNREACHABLE', 'STORE_UNREACHABLE']);
    expect(tookMs).toBeGreaterThanOrEqual(695);
    expect(tookMs).toBeLessThan(1_200);
    expect(worstMs()).toBeLessThan(400);
    await locker.thaw();
    locker.send({ do: 'unlock' });
    await locker.next('unlock');
    await using other = await opening;
    await take(other, 'a', SHORT);
    expect(watch.states).not.toContain('lost');
    await expect.poll(() => lease.state, { timeout: 3_000 }).toBe('held');
  });

  it('K-04 K-05 costs a lease at its deadline, and not later', async () => {
    const path = newFile();
    await using holdfast = await openAt({ url: `sqlite:${path}` });
    await using locker = await start('file-locker.mjs', path);
    const options = { ttl: 1_500, renewEvery: 200, operationTimeout: 400 };
    const lease = await take(holdfast, 'k', options);
    const takenMs = hostMs();
    using watch = new LeaseWatch(lease);
    locker.send({ do: 'lock' });
    await locker.next('lock');
    const lockedMs = hostMs();
    await locker.freeze();
    await nextEvent(holdfast, 'lease.lost');
    expect(hostMs()).toBeGreaterThan(takenMs + 1_000);
    // A renewal may have been confirmed up to the moment of the lock.
    await watch.neverPassesAfter(lockedMs + 1_500 - 100 + 5);
  });
});

describe('writers that are killed at any moment', () => {
  it('K-02 K-15 20 times leave a file that is whole, and fences that only rise', async () => {
    const path = newFile();
    const url = `sqlite:${path}`;
    const highest = new Map<string, number>();
    const seen = new Set<string>();
    for (let round = 0; round < 5; round++) {
      const before = new Map(highest);
      const killed = Array.from({ length: 4 }, async (_, n) => {
        const writer = spawnChild('file-writer.mjs', { args: [url, `w${round}-${n}`, '200'] });
        await writer.next('granted', 20_000);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 150));
        await writer.kill();
        return writer.received.map(({ key, fence }) => ({
          key: String(key),
          fence: Number(fence),
        }));
      });
      for (const grants of await Promise.all(killed)) {
        for (const { key, fence } of grants) {
          expect(fence).toBeGreaterThan(before.get(key) ?? 0);
          expect(seen.has(`${key} ${fence}`)).toBe(false);
          seen.add(`${key} ${fence}`);
          highest.set(key, Math.max(highest.get(key) ?? 0, fence));
        }
      }
    }
    expect(seen.size).toBeGreaterThan(100);
    const db = new SqliteConnection(path);
    expect(db.value('PRAGMA integrity_check')).toBe('ok');
    db.close();
    await using holdfast = await openAt({ url }, { quarantine: 'on' });
    const { fence } = await take(holdfast, 'k0', { wait: '5s' });
    expect(fence).toBeGreaterThan(highest.get('k0') ?? 0);
  });
});
