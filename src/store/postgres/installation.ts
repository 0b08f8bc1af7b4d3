/** The schema in the user's database: tables, and one function per verb. */
import { readdirSync, readFileSync } from 'node:fs';
import { StoreUnreachableError, StoreUnsuitableError } from '../../core/errors.ts';
import type { PostgresLink } from './dialer.ts';
import { isServerError } from './failures.ts';
import { literal, within } from './statement.ts';

/** The version of tables and functions. A later one in the database is refused. */
const SCHEMA_VERSION = 1;

/** No step of the installation takes longer. */
const INSTALL_MS = 30_000;
const SQL = new URL('./sql/', import.meta.url);

export interface InstallOptions {
  readonly store: string;
  readonly schema: string;
  /** False: a database without the schema is an error. */
  readonly create: boolean;
}

/** Installs the schema where it is missing. Processes that open at once install it once. */
export async function ensureInstalled(link: PostgresLink, options: InstallOptions): Promise<void> {
  if (await isInstalled(link, options)) return;
  if (!options.create) {
    const why = `there is no schema '${options.schema}'. Run 'holdfast store install'`;
    throw new StoreUnreachableError({ store: options.store, operation: 'open', why });
  }
  await install(link, options);
}

/** Whether the database has the schema in this version. Throws for another version. */
async function isInstalled(
  link: PostgresLink,
  { store, schema }: InstallOptions,
): Promise<boolean> {
  const version = await installedVersion(link, schema);
  if (version === null) return false;
  if (version === SCHEMA_VERSION) return true;
  const problem =
    `The schema '${schema}' has version ${version}, and this Holdfast knows version ${SCHEMA_VERSION}. ` +
    'Use the Holdfast that made it, or another schema.';
  throw new StoreUnsuitableError({ store, problems: [problem] });
}

/** A comment on the schema says its version: every role can read it. Null: not installed. */
export async function installedVersion(link: PostgresLink, schema: string): Promise<number | null> {
  // Not to_regnamespace: it may answer from a cache that is older than the lock of `install`.
  const sql = `SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = ${literal(schema)}`;
  const text = await link.query(within(INSTALL_MS, sql));
  const version = /^Holdfast, version (\d+)/.exec(text ?? '')?.[1];
  return version === undefined ? null : Number(version);
}

async function install(link: PostgresLink, options: InstallOptions): Promise<void> {
  const { store, schema } = options;
  await link.query('BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE');
  try {
    // Held until COMMIT. An advisory lock of the session would outlive a pooler's connection.
    const lock = `SELECT pg_advisory_xact_lock(hashtext(${literal(`holdfast/${schema}`)}))::text`;
    await link.query(within(INSTALL_MS, `SET LOCAL synchronous_commit = on;${lock}`));
    if (!(await isInstalled(link, options))) await link.query(installation(schema));
    await link.query('COMMIT');
  } catch (error) {
    await link.query('ROLLBACK').catch(() => {});
    if (!isServerError(error) || error.code !== '42501') throw error;
    const problem =
      `The schema '${schema}' is not installed, and this role may not install it (${error.message}). ` +
      "Run 'holdfast store install' once as a role that may CREATE in the database.";
    throw new StoreUnsuitableError({ store, problems: [problem] });
  }
}

/**
 * A plan is kept for as long as its session lives, and is not made again for each call. Made for a
 * small table, it must not read all of a large one. `jit` would compile what costs nothing.
 */
const PLANS = `DO $$ DECLARE f regprocedure; BEGIN
  FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema::regnamespace AND prosecdef LOOP
    EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan', f);
  END LOOP;
END $$`;

/** What makes the schema, within the caller's transaction. */
function installation(schema: string): string {
  const files = readdirSync(SQL)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const sources = files.map((name) => readFileSync(new URL(name, SQL), 'utf8'));
  return [
    `CREATE SCHEMA IF NOT EXISTS "${schema}"`,
    // Functions keep this path (SET search_path FROM CURRENT): no other schema can shadow a table.
    `SET LOCAL search_path = "${schema}", pg_temp`,
    ...sources.map((source) => source.trim().replace(/;$/, '')),
    `INSERT INTO marker (id, format, origin, era, system, timeline, synchronous)
     SELECT 1, ${SCHEMA_VERSION}, gen_random_uuid()::text, gen_random_uuid()::text, system_identifier::text, timeline(), is_synchronous()
     FROM pg_control_system()`,
    PLANS,
    `REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "${schema}" FROM PUBLIC`,
    `COMMENT ON SCHEMA "${schema}" IS 'Holdfast, version ${SCHEMA_VERSION}: leases, and the work they protect'`,
  ].join(';\n');
}
