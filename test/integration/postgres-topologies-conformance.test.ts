import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';

/** One test makes 20,000 calls, one after the other. */
const TIMEOUT_MS = 120_000;
const patiently = (name: string, run: () => Promise<void>) => it(name, run, TIMEOUT_MS);

let server: PostgresServer;
let pgbouncer: Pgbouncer;
// It keeps the event loop busy for seconds while it starts.
const db = await PGlite.create();
beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  pgbouncer = await startPgbouncer(server.port);
  for (const schema of ['holdfast', 'other']) {
    await (await openPostgresStore(`${server.url}?schema=${schema}`)).close();
    await server.sql(MOVABLE_CLOCK(schema));
  }
});
afterAll(async () => {
  await pgbouncer[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

type From = Parameters<typeof openPostgresStore>[0];
const ways: Record<string, { from: () => From; prefix?: string; schema?: string }> = {
  'through a Client of pg': { from: () => new pg.Client({ connectionString: server.url }) },
  'in another schema, with a prefix': {
    from: () => `${server.url}?schema=other`,
    prefix: 'team:',
    schema: 'other',
  },
  'through an instance of postgres': { from: () => postgres(server.url) },
  'through a Pool of pg': { from: () => new pg.Pool({ connectionString: server.url }) },
};

for (const [name, { from, prefix, schema }] of Object.entries(ways))
  storeConformance(
    `PostgreSQL conforms, ${name} (B-21)`,
    {
      open: async () => {
        const store = await openPostgresStore(from(), { prefix });
        return {
          store,
          elapse: async (ms) => void (await server.sql(advanceBy(ms, schema))),
          dispose: () => store.close(),
        };
      },
    },
    { describe, it: patiently },
  );

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
storeConformance(
  'PostgreSQL conforms, through pgbouncer in transaction mode (B-21)',
  {
    open: async () => {
      const options = { prefix: 'pooled:', quarantine: 'off' } as const;
      const store = await openPostgresStore(`${pgbouncer.url}?schema=pooled`, options);
      return { store, elapse: wait, dispose: () => store.close() };
    },
  },
  { describe, it: (name, run) => it.concurrent(name, run, TIMEOUT_MS) },
);

beforeAll(async () => {
  await (await openPostgresStore(db)).close();
  await db.exec(MOVABLE_CLOCK());
});
afterAll(() => db.close());
storeConformance(
  'PGlite conforms (B-21)',
  {
    open: async () => {
      const store = await openPostgresStore(db);
      return {
        store,
        elapse: async (ms) => void (await db.exec(advanceBy(ms))),
        dispose: () => store.close(),
      };
    },
  },
  { describe, it: patiently },
);
