import { afterAll, beforeAll, describe, it } from 'vitest';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';

/** One test makes 20,000 calls. */
const TIMEOUT_MS = 120_000;

let server: PostgresServer;
/** Of a role with the rights that docs/postgres.md asks for, and no others. */
let appUrl: string;
beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  await (await openPostgresStore(server.url)).close();
  await server.sql(`${MOVABLE_CLOCK()}; CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA holdfast TO app;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO app`);
  appUrl = server.url.replace('postgres@', 'app@');
}, TIMEOUT_MS);
afterAll(() => server[Symbol.asyncDispose]());

storeConformance(
  'PostgreSQL conforms, by its address, for a role that may only call functions (B-21)',
  {
    open: async () => {
      const store = await openPostgresStore(appUrl);
      return {
        store,
        elapse: async (ms) => void (await server.sql(advanceBy(ms))),
        dispose: () => store.close(),
      };
    },
  },
  { describe, it: (name, run) => it(name, run, TIMEOUT_MS) },
);
