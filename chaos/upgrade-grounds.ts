/** What an upgrade runs on: a store of its own, and a digest that changes with any of its content. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../test/support/postgres-server.ts';
import { startRedis } from '../test/support/redis-server.ts';
import { requirePostgres } from './postgres-programs.ts';

export interface Ground {
  readonly url: string;
  /** For the files of the instances. */
  readonly folder: string;
  /** The same for the same content. */
  digest(): Promise<string>;
  end(): Promise<void>;
}

type Store = Omit<Ground, 'folder'>;

const START = { sqlite, redis, postgres };

export type UpgradeStore = keyof typeof START;
export const UPGRADE_STORES = Object.keys(START) as readonly UpgradeStore[];

export async function startGround(kind: UpgradeStore): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-upgrade-'));
  const store = await START[kind](folder);
  const end = async () => {
    await store.end();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...store, folder, end };
}

async function sqlite(folder: string): Promise<Store> {
  const path = join(folder, 'store.db');
  const digest = async () => createHash('sha256').update(readFileSync(path)).digest('hex');
  return { url: `sqlite:${path}`, digest, end: async () => {} };
}

async function redis(): Promise<Store> {
  const server = await startRedis({ args: ['--enable-debug-command', 'yes'] });
  const digest = async () => String(await server.cli('DEBUG', 'DIGEST'));
  return { url: server.url, digest, end: () => server.stop() };
}

async function postgres(): Promise<Store> {
  const { programs } = requirePostgres([]);
  const server = await startPostgres(programs, { isDurable: true });
  const digest = async () => {
    const tables = await server.sql<{ name: string }>(TABLES);
    const hash = createHash('sha256');
    for (const { name } of tables) {
      const [row] = await server.sql(
        `SELECT string_agg(t::text, ' ' ORDER BY t::text) FROM ${name} t`,
      );
      hash.update(`${name} ${JSON.stringify(row)}\n`);
    }
    return hash.digest('hex');
  };
  const end = async () => {
    await server[Symbol.asyncDispose]();
  };
  return { url: server.url, digest, end };
}

const TABLES = `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
  WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`;
