import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, spawnChild } from '../support/child.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { expectRising, hostMs } from './support/lease-watch.ts';

leaveNothingBehind();

const RACERS = 50;
const OPTIONS = { ttl: '20s' };
const LONG_MS = 25_000;
const LANES = 4;
/** Fifty processes take ten seconds to start on two idle cores, and much longer on busy ones. */
const START_MS = 120_000;

let redis: RedisServer;
const racers: Child[] = [];
beforeAll(async () => {
  redis = await startRedis();
  // A few at a time: all at once would only take turns.
  const lane = async () => {
    while (racers.length < RACERS) {
      const racer = spawnChild('racer.mjs', { args: [redis.url, 'k'] });
      racers.push(racer);
      await racer.next('ready', START_MS);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}, START_MS);
afterAll(async () => {
  await Promise.all(racers.map((racer) => racer.kill()));
  await redis.stop();
});

async function tellAll(command: { do: string; [fact: string]: unknown }) {
  for (const racer of racers) racer.send(command);
  return Promise.all(racers.map((racer) => racer.next(command.do, LONG_MS)));
}

describe(`${RACERS} processes that want the same key`, () => {
  it('K-01 at the same moment: exactly one is granted it, and the others are told its fence', async () => {
    const answers = await tellAll({ do: 'race', atMs: hostMs() + 500, options: OPTIONS });
    const winners = answers.filter(({ ok }) => ok);
    expect(winners).toHaveLength(1);
    expect(new Set(answers.map(({ fence }) => fence))).toEqual(new Set([winners[0]?.fence]));
  });

  it('K-10 K-02 and wait for it: each has it once, one after the other, with rising fences', async () => {
    const turns = await tellAll({ do: 'queue', options: OPTIONS });
    expect(turns.filter(({ ok, held, released }) => ok && held && released)).toHaveLength(RACERS);
    turns.sort((a, b) => Number(a.fromMs) - Number(b.fromMs));
    expectRising(turns.map(({ fence }) => Number(fence)));
    const overlaps = turns.filter(
      (turn, i) => i > 0 && Number(turn.fromMs) < Number(turns[i - 1]?.toMs),
    );
    expect(overlaps).toEqual([]);
  });

  it('K-08 end by themselves once closed, and leave nothing of theirs in Redis', async () => {
    await tellAll({ do: 'close' });
    const ends = await Promise.all(racers.map((racer) => racer.exit()));
    expect(ends).toEqual(Array(RACERS).fill({ code: 0, signal: null }));
    expect(
      racers.flatMap(({ received }) => received.filter(({ event }) => event === 'unhandled')),
    ).toEqual([]);
    expect(await redis.cli('EXISTS', 'lease:k', 'line:{lease:k}')).toBe(0);
  });
});
