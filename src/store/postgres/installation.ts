/** The schema in the user's database: tables, and one function per verb. */
import { readdirSync, readFileSync } from 'node:fs';
import { StoreUnreachableError, StoreUnsuitableError } from '../../core/errors.ts';
import { UNFINISHED_FORMAT, UNFINISHED_PROBLEM } from '../port/store.ts';
import type { PostgresLink } from './dialer.ts';
import { isServerError } from './failures.ts';
import { literal, within } from './statement.ts';

/** The version of tables and functions. Any other in the database is refused. */
export const SCHEMA_VERSION = 5;
/**
 * What an upgrade to a version changes in the tables that are there, before the files of `sql/`
 * make new tables and all functions. Absent: nothing.
 */
const TABLE_CHANGES: Readonly<Record<number, string>> = {
  3: 'ALTER TABLE lease ADD COLUMN IF NOT EXISTS keepalive text COLLATE "C"',
};

/** No step of the installation takes longer. */
const INSTALL_MS = 30_000;
const SQL = new URL('./sql/', import.meta.url);

export interface InstallOptions {
  readonly store: string;
  readonly schema: string;
  /** False: a database without the schema is an error. */
  readonly create: boolean;
  /** Accepts a schema with an unfinished copy. */
  readonly unfinished?: boolean | undefined;
}

/** Installs the schema where it is missing. Processes that open at once install it once. */
export async function ensureInstalled(link: PostgresLink, options: InstallOptions): Promise<void> {
  if (await isInstalled(link, options)) return;
  if (!options.create) {
    const why = `there is no schema '${options.schema}', and a process that only reads does not create it`;
    const advice = "Run 'holdfast store install', or name another schema";
    throw new StoreUnreachableError({ store: options.store, operation: 'connect', why, advice });
  }
  await install(link, options);
}

/** Whether the database has the schema in this version. Throws for another version. */
async function isInstalled(
  link: PostgresLink,
  { store, schema, unfinished = false }: InstallOptions,
): Promise<boolean> {
  const version = await installedVersion(link, schema);
  if (version === null) return false;
  if (version === SCHEMA_VERSION) return true;
  if (version === UNFINISHED_FORMAT && unfinished) return true;
  throw new StoreUnsuitableError({ store, problems: [versionProblem(schema, version)] });
}

function versionProblem(schema: string, version: number): string {
  if (version === UNFINISHED_FORMAT) return UNFINISHED_PROBLEM;
  const advice =
    version < SCHEMA_VERSION
      ? "Stop every process of the store, and run 'holdfast store upgrade'."
      : 'Use the Holdfast that made it, or another schema.';
  return `The schema '${schema}' has version ${version}, and this Holdfast knows version ${SCHEMA_VERSION}. ${advice}`;
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
  try {
    await migrate(link, schema, async () => {
      if (!(await isInstalled(link, options))) await link.query(installation(schema));
    });
  } catch (error) {
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

/** One transaction, which no other installation or upgrade of the schema runs beside. */
async function migrate(
  link: PostgresLink,
  schema: string,
  work: () => Promise<void>,
): Promise<void> {
  await link.query('BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE');
  try {
    // Held until COMMIT. An advisory lock of the session would outlive a pooler's connection.
    const lock = `SELECT pg_advisory_xact_lock(hashtext(${literal(`holdfast/${schema}`)}))::text`;
    await link.query(within(INSTALL_MS, `SET LOCAL synchronous_commit = on;${lock}`));
    await work();
    await link.query('COMMIT');
  } catch (error) {
    await link.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/**
 * Brings an older schema to this version, in one transaction: all of it, or nothing. Returns the
 * version before; null if the schema is not installed. `check` throws if it must not change now.
 */
export async function upgrade(
  link: PostgresLink,
  { store, schema }: { readonly store: string; readonly schema: string },
  check: (version: number) => Promise<void>,
): Promise<number | null> {
  let before: number | null = null;
  await migrate(link, schema, async () => {
    before = await installedVersion(link, schema);
    if (before === null || before === SCHEMA_VERSION) return;
    if (before > SCHEMA_VERSION)
      throw new StoreUnsuitableError({ store, problems: [versionProblem(schema, before)] });
    await check(before);
    // New functions belong to the role that owns the rest: they run with its rights.
    const owner = await link.query(
      `SELECT quote_ident(nspowner::regrole::text) FROM pg_namespace WHERE nspname = ${literal(schema)}`,
    );
    await link.query(`SET LOCAL ROLE ${owner}`);
    const users = JSON.parse((await link.query(rolesThatUse(schema))) ?? '[]') as string[];
    await link.query(upgradeFrom(before, schema, users));
  });
  return before;
}

/** The roles that may call the functions, beside their owner. */
function rolesThatUse(schema: string): string {
  return `SELECT coalesce(json_agg(DISTINCT quote_ident(r.rolname)), '[]')::text
    FROM pg_proc p CROSS JOIN aclexplode(p.proacl) AS a JOIN pg_roles r ON r.oid = a.grantee
    WHERE p.pronamespace = ${literal(schema)}::regnamespace AND p.proname = 'lease_acquire' AND a.grantee <> p.proowner`;
}

function upgradeFrom(version: number, schema: string, users: readonly string[]): string {
  const changes = Object.entries(TABLE_CHANGES).filter(([to]) => Number(to) > version);
  return [
    `SET LOCAL search_path = "${schema}", pg_temp`,
    // Functions are made again, all but those that triggers on tables of the user depend on.
    `DO $$ DECLARE f regprocedure; BEGIN
       FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = ${literal(schema)}::regnamespace
         AND prorettype <> 'trigger'::regtype LOOP EXECUTE format('DROP FUNCTION %s', f); END LOOP; END $$`,
    ...changes.map(([, sql]) => sql),
    ...sources(),
    `UPDATE marker SET format = ${SCHEMA_VERSION}`,
    ...closing(schema),
    ...users.map((role) => `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "${schema}" TO ${role}`),
  ].join(';\n');
}

/** What makes the schema, within the caller's transaction. */
function installation(schema: string): string {
  return [
    `CREATE SCHEMA IF NOT EXISTS "${schema}"`,
    // Functions keep this path (SET search_path FROM CURRENT): no other schema can shadow a table.
    `SET LOCAL search_path = "${schema}", pg_temp`,
    ...sources(),
    `INSERT INTO marker (id, format, origin, era, system, timeline, synchronous)
     SELECT 1, ${SCHEMA_VERSION}, gen_random_uuid()::text, gen_random_uuid()::text, system_identifier::text, timeline(), is_synchronous()
     FROM pg_control_system()`,
    ...closing(schema),
  ].join(';\n');
}

/** The statements that make tables, where they are missing, and functions. */
function sources(): string[] {
  const files = readdirSync(SQL)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  return files.map((name) => readFileSync(new URL(name, SQL), 'utf8').trim().replace(/;$/, ''));
}

function closing(schema: string): string[] {
  return [
    PLANS,
    `REVOKE ALL ON ALL FUNCTIONS IN SCHEMA "${schema}" FROM PUBLIC`,
    `COMMENT ON SCHEMA "${schema}" IS 'Holdfast, version ${SCHEMA_VERSION}: leases, and the work they protect'`,
  ];
}
