import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { storeStatus, upgradeStore } from '../../src/store/postgres/administration.ts';
import { addFence } from '../../src/store/postgres/fences.ts';
import { SCHEMA_VERSION } from '../../src/store/postgres/installation.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';

const FIRST = readFileSync(new URL('../fixtures/postgres-schema-1.sql', import.meta.url), 'utf8');
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  await server.sql(
    'CREATE ROLE app LOGIN; CREATE ROLE admin LOGIN; GRANT CREATE ON DATABASE postgres TO admin',
  );
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() =>
  server.sql('DROP SCHEMA IF EXISTS holdfast CASCADE; DROP SCHEMA IF EXISTS fresh CASCADE'),
);

/** Version 1, installed by `admin`, and used by `app`. */
const installFirst = async () => {
  await server.sql(`BEGIN; SET LOCAL ROLE admin; ${FIRST};
    GRANT USAGE ON SCHEMA holdfast TO app; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO app; COMMIT`);
};
const as = (role: string) => server.url.replace('postgres@', `${role}@`);

/** All that the schema has, in words that do not name it. */
const shapeOf = async (schema: string) => {
  const { 0: row } = await server.sql<{ shape: object }>(`SELECT json_build_object(
    'columns', (SELECT json_agg(format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default)
      ORDER BY table_name, column_name) FROM information_schema.columns WHERE table_schema = '${schema}'),
    'indexes', (SELECT json_agg(indexdef ORDER BY indexname) FROM pg_indexes WHERE schemaname = '${schema}'),
    'constraints', (SELECT json_agg(conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) ORDER BY 1)
      FROM pg_constraint WHERE connamespace = '${schema}'::regnamespace),
    'triggers', (SELECT json_agg(pg_get_triggerdef(oid)) FROM pg_trigger
      WHERE tgrelid = '${schema}.lease'::regclass AND NOT tgisinternal),
    'functions', (SELECT json_agg(pg_get_functiondef(oid) ORDER BY proname, oid::regprocedure::text) FROM pg_proc
      WHERE pronamespace = '${schema}'::regnamespace)) AS shape`);
  // The setting has the same name in every schema.
  const text = JSON.stringify(row?.shape ?? null).replace(
    /holdfast\.lease(?=',| = '')/g,
    'SETTING',
  );
  return JSON.parse(text.replaceAll(schema, 'SCHEMA'));
};
const sorted = (shape: Record<string, string[]>) =>
  Object.fromEntries(Object.entries(shape).map(([name, all]) => [name, [...all].sort()]));

describe('store upgrade', () => {
  it('B-21 makes of version 1 what an installation makes, and keeps its rows, rights and owner', async () => {
    await installFirst();
    await server.sql(`INSERT INTO holdfast.lease (key, fence, until, kept)
      VALUES ('lease:kept', 4000000000000000, 0, 9000000000000000)`);
    expect(await storeStatus(server.url)).toMatchObject({ version: 1, known: SCHEMA_VERSION });
    await expect(openPostgresStore(server.url)).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
      message: expect.stringMatching(/has version 1.*store upgrade/),
    });
    expect(await upgradeStore(server.url)).toMatchObject({ before: 1, version: SCHEMA_VERSION });
    expect(await upgradeStore(server.url)).toMatchObject({ before: SCHEMA_VERSION });
    await (await openPostgresStore(`${server.url}?schema=fresh`)).close();
    expect(sorted(await shapeOf('holdfast'))).toEqual(sorted(await shapeOf('fresh')));
    const owners = await server.sql(
      `SELECT DISTINCT proowner::regrole::text AS owner FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace`,
    );
    expect(owners).toEqual([{ owner: 'admin' }]);
    const holdfast = await open(as('app'));
    const result = await holdfast.acquire('kept');
    expect(result.ok && result.lease.fence).toBe(4_000_000_000_000_001);
    if (result.ok) await result.lease.release();
    await holdfast.close();
  });

  it('B-21 is refused while leases are held, for a role that does not own the schema, and for a newer one', async () => {
    await installFirst();
    await server.sql(`INSERT INTO holdfast.lease (key, holder, fence, until, kept)
      VALUES ('lease:held', 'x', 1, 9000000000000000, 9000000000000000)`);
    await expect(upgradeStore(server.url)).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringMatching(/leases are held.*Stop every process/),
    });
    expect(await storeStatus(server.url)).toMatchObject({ version: 1 });
    await server.sql('DELETE FROM holdfast.lease');
    await expect(upgradeStore(as('app'))).rejects.toMatchObject({ code: 'STORE_REFUSED' });
    expect(await upgradeStore(as('admin'))).toMatchObject({ before: 1, version: SCHEMA_VERSION });
    await server.sql(`COMMENT ON SCHEMA holdfast IS 'Holdfast, version 99: x'`);
    for (const refused of [upgradeStore, openPostgresStore])
      await expect(refused(server.url)).rejects.toMatchObject({
        code: 'STORE_UNSUITABLE',
        message: expect.stringMatching(/version 99.*Use the Holdfast that made it/),
      });
  });

  it('B-21 B-25 adds keepalives to version 2', async () => {
    await (await openPostgresStore(server.url)).close();
    const fresh = sorted(await shapeOf('holdfast'));
    await server.sql(`DROP TABLE holdfast.detachment, holdfast.keepalive;
      DROP FUNCTION holdfast.tell_keepalive, holdfast.bury_keepalives CASCADE;
      DROP FUNCTION holdfast.lives_until, holdfast.settle;
      ALTER TABLE holdfast.lease DROP COLUMN keepalive;
      COMMENT ON SCHEMA holdfast IS 'Holdfast, version 2: x'`);
    expect(await storeStatus(server.url)).toMatchObject({ version: 2, held: 0 });
    expect(await upgradeStore(server.url)).toMatchObject({ before: 2, version: SCHEMA_VERSION });
    expect(sorted(await shapeOf('holdfast'))).toEqual(fresh);
  });

  it('B-21 B-25 replaces the functions and the trigger of version 4', async () => {
    await (await openPostgresStore(server.url)).close();
    const fresh = sorted(await shapeOf('holdfast'));
    await server.sql(`DROP TRIGGER lease_detached ON holdfast.lease;
      CREATE TRIGGER lease_detached AFTER UPDATE ON holdfast.lease FOR EACH ROW
        WHEN (OLD.keepalive IS NOT NULL AND NEW.fence <> OLD.fence) EXECUTE FUNCTION holdfast.tell_keepalive();
      DROP FUNCTION holdfast.acquire_each, holdfast.release_each;
      COMMENT ON SCHEMA holdfast IS 'Holdfast, version 4: x'`);
    expect(await upgradeStore(server.url)).toMatchObject({ before: 4, version: SCHEMA_VERSION });
    expect(sorted(await shapeOf('holdfast'))).toEqual(fresh);
  });

  it('B-21 B-22 keeps the fences of tables', async () => {
    await (await openPostgresStore(server.url)).close();
    await server.sql('CREATE TABLE fenced (id int)');
    await addFence(server.url, { table: 'fenced', prefix: '' }, () => new Date(0));
    await server.sql(`COMMENT ON SCHEMA holdfast IS 'Holdfast, version 1: x'`);
    await upgradeStore(server.url);
    await expect(server.sql('DELETE FROM fenced')).rejects.toMatchObject({ code: 'HF003' });
  });
});
