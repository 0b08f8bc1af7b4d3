import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, spawnChild } from '../support/child.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, openAt, warmUp } from './support/holdfasts.ts';
import { expectRising, hostMs, SHORT } from './support/lease-watch.ts';

leaveNothingBehind();

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
let redis: RedisServer;
let made = 0;
beforeAll(async () => {
  redis = await startRedis();
  await warmUp(redis);
});
afterAll(async () => {
  await redis.stop();
  rmSync(root, { recursive: true });
});

/** A store of its own for each test. */
const STORES: [string, () => string][] = [
  ['SQLite', () => `sqlite:${join(root, `${made++}.db`)}`],
  ['Redis', () => `${redis.url}/${made++}`],
];

const SLOTS = 3;
const PROCESSES = 8;
/** How long a slot is used each time, and how long its user rests: long enough that more want slots than there are, always. */
const HOLD_MS = 30;
const POOL = { slots: SLOTS, ...SHORT };

interface Use {
  readonly who: number;
  readonly slot: string;
  readonly fence: number;
  readonly askedMs: number;
  readonly gotMs: number;
  /** Until when it certainly used it; the moment of its death for one that was killed. */
  readonly endMs: number;
  readonly isHeld: boolean;
  readonly wasKilled: boolean;
}

/** What the processes say of themselves, each slot's uses in the order of their fences. */
function usesOf(
  users: readonly Child[],
  killedMs: ReadonlyMap<number, number>,
): Map<string, Use[]> {
  const bySlot = new Map<string, Use[]>();
  for (const [who, { received }] of users.entries()) {
    for (const [i, message] of received.entries()) {
      if (message.event !== 'granted') continue;
      const end = received.slice(i).find(({ event }) => event === 'ended');
      const slot = String(message.slot);
      const use: Use = {
        ...{ who, slot, fence: Number(message.fence) },
        ...{ askedMs: Number(message.askedMs), gotMs: Number(message.gotMs) },
        endMs: Number(end?.endMs ?? killedMs.get(who)),
        isHeld: end === undefined || end.isHeld === true,
        wasKilled: end === undefined,
      };
      bySlot.set(slot, [...(bySlot.get(slot) ?? []), use]);
    }
  }
  for (const uses of bySlot.values()) uses.sort((a, b) => a.fence - b.fence);
  return bySlot;
}

async function startUsers(url: string): Promise<AsyncDisposable & { users: Child[] }> {
  const args = [url, JSON.stringify(POOL)];
  const users = Array.from({ length: PROCESSES }, () => spawnChild('pool-user.mjs', { args }));
  await Promise.all(users.map((user) => user.next('ready', 25_000)));
  const kill = async () => void (await Promise.all(users.map((user) => user.kill())));
  return { users, [Symbol.asyncDispose]: kill };
}

/** How often somebody who asked later was served earlier, for whom that was worst. */
function worstOvertaking(uses: readonly Use[]): number {
  const overtaken = ({ askedMs, gotMs }: Use) =>
    uses.filter((other) => other.askedMs > askedMs && other.gotMs < gotMs).length;
  return Math.max(...uses.map(overtaken));
}

describe.each(STORES)('a pool that processes share on %s', (_, urlOf) => {
  it('K-02 K-10 has each slot used by one at a time, with rising fences, while holders are killed; none is lost, and nobody starves', async () => {
    const url = urlOf();
    await using crew = await startUsers(url);
    const { users } = crew;
    const killedMs = new Map<number, number>();
    const kill = async (who: number) => {
      const user = users[who] as Child;
      user.send({ do: 'keep' });
      await user.next(({ event, isKept }) => event === 'granted' && isKept === true, 20_000);
      killedMs.set(who, hostMs());
      await user.kill();
    };
    for (const user of users) user.send({ do: 'work', holdMs: HOLD_MS });
    await Promise.all(users.map((user) => user.next('granted', 20_000)));
    await Promise.all([kill(0), kill(1)]);
    // Everybody else has a turn on every slot again, those of the dead included.
    const lastDeathMs = Math.max(...killedMs.values());
    const isUsed = (uses: readonly Use[]) => uses.some(({ gotMs }) => gotMs > lastDeathMs + 500);
    const what = 'all slots to be used again';
    await until(
      () => {
        const uses = usesOf(users, killedMs);
        return uses.size === SLOTS && [...uses.values()].every(isUsed);
      },
      { what, deadlineMs: 20_000, every: 50 },
    );
    const alive = users.slice(2);
    for (const user of alive) user.send({ do: 'finish' });
    for (const user of alive) expect(await user.next('work', 20_000)).toEqual({ event: 'work' });

    const uses = usesOf(users, killedMs);
    for (const each of uses.values()) {
      expectRising(each.map(({ fence }) => fence));
      const early = each.filter(({ gotMs }, i) => i > 0 && gotMs < (each[i - 1]?.endMs ?? 0));
      expect(early).toEqual([]);
      expect(each.filter(({ isHeld }) => !isHeld)).toEqual([]);
    }
    const all = [...uses.values()].flat();
    const lateMs = [...uses.values()].flatMap((each) =>
      each.flatMap((use, i) => (use.wasKilled ? [(each[i + 1]?.gotMs ?? 0) - use.endMs] : [])),
    );
    expect(lateMs).toHaveLength(2);
    // As soon as the store has let go of what a dead holder had; the rest is for a busy machine.
    for (const ms of lateMs) expect(ms).toBeLessThan(SHORT.ttl + 2_000);
    expect(worstOvertaking(all)).toBeLessThanOrEqual(4 * PROCESSES);

    await using holdfast = await openAt({ url });
    const free = (await holdfast.pool('gpu', POOL).inspect()).filter(({ holder }) => !holder);
    expect(free).toHaveLength(SLOTS);
    for (const user of alive) user.send({ do: 'close' });
    const ends = await Promise.all(alive.map((user) => user.exit()));
    expect(ends).toEqual(alive.map(() => ({ code: 0, signal: null })));
  });
});
