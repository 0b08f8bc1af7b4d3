/** Installs, shows and removes the schema, for the command line. */
import { ConfigError, StoreRefusedError } from '../../core/errors.ts';
import { withLink } from './administration-link.ts';
import { fencedTables } from './fences.ts';
import { ensureInstalled, installedVersion, SCHEMA_VERSION, upgrade } from './installation.ts';
import { literal, within } from './statement.ts';

const WORK_MS = 60_000;
const ROLE_FORM = /^[A-Za-z_][A-Za-z0-9_$-]{0,62}$/;

export interface StoreStatus {
  readonly store: string;
  readonly schema: string;
  /** Null: not installed. */
  readonly version: number | null;
  /** The version that this Holdfast installs and uses. */
  readonly known: number;
  /** The leases that are held now. */
  readonly held: number;
  readonly bytes: number;
  readonly timeline: string | null;
}

/** Makes the schema, unless it is there. `role` gets the rights that an application needs. */
export async function installStore(address: string, role?: string): Promise<StoreStatus> {
  if (role !== undefined && !ROLE_FORM.test(role))
    throw new ConfigError({ field: 'grant', value: role, rule: 'it must be the name of a role' });
  await withLink(address, 'install', async (link, { name: store, schema }) => {
    await ensureInstalled(link, { store, schema, create: true });
    if (role === undefined) return;
    const grants = [
      `GRANT USAGE ON SCHEMA "${schema}" TO "${role}"`,
      `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "${schema}" TO "${role}"`,
    ];
    await link.query(within(WORK_MS, grants.join(';')));
  });
  return storeStatus(address);
}

export function storeStatus(address: string): Promise<StoreStatus> {
  return withLink(address, 'status', async (link, { name: store, schema }) => {
    const version = await installedVersion(link, schema);
    const known = SCHEMA_VERSION;
    if (version === null)
      return { store, schema, version, known, held: 0, bytes: 0, timeline: null };
    const sql = `SELECT json_build_object(
      'held', (SELECT count(*) FROM "${schema}".lease l WHERE ${isHeld(schema, version)}),
      'bytes', (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n
        ON n.oid = c.relnamespace WHERE n.nspname = ${literal(schema)} AND c.relkind = 'r'),
      'timeline', "${schema}".timeline())::text`;
    const facts = JSON.parse((await link.query(within(WORK_MS, sql))) ?? '{}');
    return { store, schema, version, known, ...facts };
  });
}

/** Whether the lease `l` is held, in SQL. Keepalives came with version 3. */
function isHeld(schema: string, version: number): string {
  const kept = `SELECT k.until FROM "${schema}".keepalive k WHERE k.id = l.keepalive`;
  const until = version < 3 ? 'l.until' : `greatest(l.until, (${kept}))`;
  return `l.holder <> '!revoked' AND ${until} > "${schema}".clock_us()`;
}

/** The schema after its upgrade, and the version that it had; null: it is not installed. */
export interface StoreUpgrade extends StoreStatus {
  readonly before: number | null;
}

/** Brings an older schema to this version. Refuses while a lease is held or a member is alive. */
export async function upgradeStore(address: string): Promise<StoreUpgrade> {
  const before = await withLink(address, 'upgrade', (link, { name: store, schema }) =>
    upgrade(link, { store, schema }, async (version) => {
      const used = await link.query(
        `SELECT (EXISTS (SELECT FROM "${schema}".lease l WHERE ${isHeld(schema, version)})
          OR EXISTS (SELECT FROM "${schema}".member WHERE until > "${schema}".clock_us()))::text`,
      );
      if (used !== 'true') return;
      const reply = 'leases are held, or instances are alive';
      const advice = 'Stop every process of the store first. Nothing was changed.';
      throw new StoreRefusedError({ store, operation: 'upgrade', reply, advice });
    }),
  );
  return { ...(await storeStatus(address)), before };
}

/**
 * Drops the schema with all that Holdfast has there. Refuses while a lease is held or a table is
 * fenced: the fence would go with the schema.
 */
export async function uninstallStore(address: string): Promise<StoreStatus> {
  const status = await storeStatus(address);
  const refusal = (reply: string, first: string) => {
    const advice = `${first} first. Nothing was changed.`;
    return new StoreRefusedError({ store: status.store, operation: 'uninstall', reply, advice });
  };
  if (status.held > 0)
    throw refusal(`${status.held} leases are held`, 'Stop every process of the store');
  if (status.version !== null)
    await withLink(address, 'uninstall', async (link, to) => {
      const [table] = await fencedTables(link, to);
      if (table !== undefined)
        throw refusal(`table ${table} is fenced`, `Run 'holdfast fence rm ${table}'`);
      await link.query(within(WORK_MS, `DROP SCHEMA "${to.schema}" CASCADE`));
    });
  return status;
}
