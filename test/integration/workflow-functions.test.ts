import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Child, spawnChild } from '../support/child.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';

leaveNothingBehind();

let folder: string;
let redis: RedisServer;
let postgres: PostgresServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-functions-'));
  redis = await startRedis();
  postgres = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
});
afterAll(async () => {
  await redis.stop();
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const TTL_MS = 1_000;
const DEADLINE_MS = 30_000;
/** Before and after each of ten lines. */
const POINTS = 20;
const EXPECTED = [
  ...['reserve tea', 'charge tea', 'tea shipped', null, 'after-sleep tea', { by: 'me' }],
  ...['gift shipped', null, 'thank tea', 'close tea'],
];
const EFFECTS = ['after-sleep', 'charge', 'close', 'reserve', 'ship-gift', 'ship-tea', 'thank'];

const STORES = [
  { name: 'SQLite', url: () => `sqlite:${join(folder, 'holdfast.db')}` },
  { name: 'Redis', url: () => redis.url },
  { name: 'PostgreSQL', url: () => postgres.url },
];

describe.each(STORES)('a workflow function over $name', ({ name, url: urlOf }) => {
  it(
    'B-15 B-16 B-17 B-18 B-19 killed with -9 at every line in turn, each effect is applied once and the result is the same',
    async () => {
      const url = urlOf();
      const sink = join(folder, name);
      mkdirSync(sink);
      const ids = Array.from({ length: POINTS }, (_, n) => `order-${n}`);
      await using holdfast = await openAt({ url });
      const { workflows } = holdfast;
      for (const id of ids) await workflows.start('fulfil', id, { item: 'tea' });
      for (const id of ids) await workflows.signal(id, 'approved', { by: 'me' });
      const children: Child[] = [];
      let isOver = false;
      /** Whoever dies is followed by another process. */
      const succession = async () => {
        while (!isOver) {
          const child = spawnChild('workflow-function.mjs', { args: [url, sink, String(TTL_MS)] });
          children.push(child);
          await child.exit(120_000);
        }
      };
      const running = [succession(), succession()];
      const results = await Promise.all(ids.map((id) => workflows.result(id)));
      for (const result of results) expect(result).toEqual(EXPECTED);
      isOver = true;
      for (const child of children) await child.kill();
      await Promise.all(running);
      const files = readdirSync(sink);
      expect(files.filter((file) => file.startsWith('killed'))).toHaveLength(POINTS);
      for (const id of ids) {
        const effects = files.filter((file) => file.startsWith(`${id} `));
        expect(effects.map((file) => file.split(' ')[1]).sort()).toEqual(EFFECTS);
        const kinds: string[] = [];
        for await (const { what } of workflows.history(id)) kinds.push(what.kind);
        expect(kinds.filter((kind) => kind === 'emitted')).toHaveLength(2);
      }
    },
    120_000 + DEADLINE_MS,
  );
});
