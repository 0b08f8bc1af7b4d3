import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, spawnChild } from '../support/child.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';

leaveNothingBehind();

let folder: string;
let redis: RedisServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-processes-'));
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true });
});

const TTL_MS = 2_400;
const DEADLINE_MS = 25_000;
const IDS = ['one', 'two', 'three', 'four'];
const TYPES = ['VALIDATE_DATA', 'PROCESS_DATA', 'STORE_RESULTS'];

const start = async (script: string, ...args: string[]): Promise<Child> => {
  const child = spawnChild(script, { args });
  await child.next('ready', DEADLINE_MS);
  return child;
};

const STORES = [
  { name: 'SQLite', url: () => `sqlite:${join(folder, 'holdfast.db')}` },
  { name: 'Redis', url: () => redis.url },
];

describe.concurrent.each(STORES)('processes over $name', ({ name, url: urlOf }) => {
  it('W-14 W-13 three processors in processes of their own: kill -9 of the orchestrator and of one of them, each effect once', async () => {
    const url = urlOf();
    const sink = join(folder, name);
    mkdirSync(sink);
    const processor = (target: string, ...more: string[]) =>
      start('workflow-processor.mjs', url, target, sink, ...more);
    const orchestrator = () => start('workflow-orchestrator.mjs', url, String(TTL_MS), ...IDS);
    await using validator = await processor('validator');
    await using archive = await processor('archive');
    await using dying = await processor('calculator', 'hang');
    await using first = await orchestrator();
    // It has made its effect, and dies before anybody hears of it; nobody else can do what it did, so nothing is finished.
    const { id: struck } = await dying.next('effect', DEADLINE_MS);
    await Promise.all([dying.kill(), first.kill()]);
    await using calculator = await processor('calculator');
    await using second = await orchestrator();
    const again = await calculator.next(({ id }) => id === struck, DEADLINE_MS);
    expect(again).toMatchObject({ event: 'effect', isApplied: false });
    expect(again.tries).toBeGreaterThan(1);
    const finished = await Promise.all(IDS.map(() => second.next('finished', DEADLINE_MS)));
    expect(finished.map(({ id, value }) => `${id} ${value}`).sort()).toEqual(
      IDS.map((id) => `${id} 20`).sort(),
    );
    const effects = readdirSync(sink).map((file) => file.split(' ').slice(0, 2).join(' '));
    expect(effects.sort()).toEqual(
      IDS.flatMap((id) => TYPES.map((type) => `${id} ${type}`)).sort(),
    );
    await using holdfast = await openAt({ url });
    for (const id of IDS) {
      const kinds: string[] = [];
      for await (const { what } of holdfast.workflows.history(id)) kinds.push(what.kind);
      expect(kinds.filter((kind) => kind === 'emitted')).toHaveLength(TYPES.length);
      expect(kinds.filter((kind) => kind === 'settled')).toHaveLength(TYPES.length);
    }
    expect(
      [...validator.received, ...archive.received].filter(({ isApplied }) => isApplied === true),
    ).toHaveLength(2 * IDS.length);
    await second.next('over', DEADLINE_MS);
    await second.exit();
  }, 60_000);
});
