/**
 * The trigger form of `guard`, for the command line. A fenced table refuses every INSERT, UPDATE,
 * DELETE and TRUNCATE of a transaction that presents no live lease. The trigger itself is the only
 * record of it, so that a dump of the table takes the fence along.
 */
import { ConfigError, StoreRefusedError, StoreUnsuitableError } from '../../core/errors.ts';
import { type Administered, withLink } from './administration-link.ts';
import type { PostgresLink } from './dialer.ts';
import { isServerError } from './failures.ts';
import { installedVersion } from './installation.ts';
import { literal, within } from './statement.ts';

/** How long a fence waits for the transactions that write its table. */
const LOCK_MS = 10_000;
const DEFAULT_SCHEMA = 'public';

/** A fenced table. */
export interface TableFence {
  /** With its schema: `public.orders`. */
  readonly table: string;
  /** The key of the store that is required. Null: any lease. */
  readonly key: string | null;
  /** Any key that begins with `key` will do. */
  readonly isPrefix: boolean;
  readonly since: string;
  /** False: its owner has disabled the trigger. */
  readonly isEnabled: boolean;
}

export interface TableName {
  /** Default `public`, unless `table` names one before a dot. */
  readonly schema?: string | undefined;
  readonly table: string;
}

export interface FenceOptions extends TableName {
  /** What the store puts before its keys. */
  readonly prefix: string;
  /** The key of a lease; with `*` at its end, every key that begins so. */
  readonly key?: string | undefined;
}

interface Qualified {
  readonly schema: string;
  readonly table: string;
}

export interface FenceChange {
  readonly fence: TableFence;
  readonly isChanged: boolean;
}

/** What the trigger is given: see `fence_write` in 9-fences.sql. */
interface TriggerArgument {
  readonly scope: string;
  readonly key: string;
  readonly isPrefix: boolean;
  readonly since: string;
}

/** Fences a table, or changes the key that its fence requires. */
export function addFence(
  address: string,
  options: FenceOptions,
  now: () => Date,
): Promise<FenceChange> {
  return withLink(address, 'fence', async (link, to) => {
    const { schema, table } = nameOf(options);
    await checkInstalled(link, to);
    await checkTable(link, { schema, table });
    const found = (await read(link, to)).find(({ name }) => isSame(name, { schema, table }));
    const { scope, key, isPrefix } = argumentOf(options);
    const isAsWanted =
      found?.fence.isEnabled === true &&
      found.argument.key === key &&
      found.argument.isPrefix === isPrefix;
    if (isAsWanted) return { fence: found.fence, isChanged: false };
    const argument: TriggerArgument = { scope, key, isPrefix, since: now().toISOString() };
    const on = `${quoted(schema)}.${quoted(table)}`;
    const trigger = quoted(triggerName(to.schema));
    const statements = [
      // Only the owner of the table may drop it; any role with TRIGGER may make it.
      ...(found === undefined ? [] : [`DROP TRIGGER ${trigger} ON ${on}`]),
      // For each statement, not each row: it costs the same for a million rows, and has TRUNCATE.
      `CREATE TRIGGER ${trigger} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${on}
       FOR EACH STATEMENT EXECUTE FUNCTION ${quoted(to.schema)}.fence_write(${literal(JSON.stringify(argument))})`,
    ];
    await link
      .query(within(LOCK_MS, statements.join(';')))
      .catch((error: unknown) => refuse(error, to, `${schema}.${table}`));
    return { fence: fenceOf({ schema, table }, argument, true), isChanged: true };
  });
}

/** Removes the fence of a table, and says which it was; null if the table has none. */
export function removeFence(address: string, name: TableName): Promise<TableFence | null> {
  return withLink(address, 'fence', async (link, to) => {
    const { schema, table } = nameOf(name);
    await checkInstalled(link, to);
    const found = (await read(link, to)).find((one) => isSame(one.name, { schema, table }));
    if (found === undefined) return null;
    const sql = `DROP TRIGGER ${quoted(triggerName(to.schema))} ON ${quoted(schema)}.${quoted(table)}`;
    await link
      .query(within(LOCK_MS, sql))
      .catch((error: unknown) => refuse(error, to, `${schema}.${table}`));
    return found.fence;
  });
}

export function listFences(address: string): Promise<readonly TableFence[]> {
  return withLink(address, 'fence', async (link, to) => {
    await checkInstalled(link, to);
    return (await read(link, to)).map(({ fence }) => fence);
  });
}

/** The tables that are fenced with the functions of a schema. */
export async function fencedTables(link: PostgresLink, to: Administered): Promise<string[]> {
  return (await read(link, to)).map(({ fence }) => fence.table);
}

/** Two stores in one database may fence the same table. */
function triggerName(storeSchema: string): string {
  return `${storeSchema}_fence`;
}

function nameOf({ schema, table }: TableName): Qualified {
  if (table === '' || schema === '') {
    const rule = 'it must be a table, such as orders or public.orders';
    throw new ConfigError({ field: 'TABLE', value: table, rule });
  }
  if (schema !== undefined) return { schema, table };
  const dot = table.indexOf('.');
  if (dot <= 0) return { schema: DEFAULT_SCHEMA, table };
  return { schema: table.slice(0, dot), table: table.slice(dot + 1) };
}

function argumentOf({ prefix, key }: FenceOptions): Omit<TriggerArgument, 'since'> {
  const scope = `${prefix}lease:`;
  if (key === undefined) return { scope, key: prefix, isPrefix: true };
  if (key.endsWith('*')) return { scope, key: scope + key.slice(0, -1), isPrefix: true };
  return { scope, key: scope + key, isPrefix: false };
}

function isSame(a: Qualified, b: Qualified) {
  return a.schema === b.schema && a.table === b.table;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

interface FoundFence {
  readonly name: Qualified;
  readonly argument: TriggerArgument;
  readonly fence: TableFence;
}

type Row = [schema: string, table: string, argument: string, isEnabled: boolean];

async function read(link: PostgresLink, { schema }: Administered): Promise<FoundFence[]> {
  // The arguments of a trigger end with a NUL each, and here there is one.
  const sql = `SELECT coalesce(json_agg(json_build_array(n.nspname, c.relname,
      convert_from(substring(t.tgargs FROM 1 FOR length(t.tgargs) - 1), 'UTF8'), t.tgenabled <> 'D')
      ORDER BY n.nspname, c.relname), '[]')::text
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_namespace f ON f.oid = p.pronamespace
    WHERE f.nspname = ${literal(schema)} AND p.proname = 'fence_write' AND t.tgname = ${literal(triggerName(schema))}`;
  const rows = JSON.parse((await link.query(within(LOCK_MS, sql))) ?? '[]') as Row[];
  return rows.map(([schema, table, text, isEnabled]) => {
    const argument = JSON.parse(text) as TriggerArgument;
    const name = { schema, table };
    return { name, argument, fence: fenceOf(name, argument, isEnabled) };
  });
}

function fenceOf(
  { schema, table }: Qualified,
  { scope, key, isPrefix, since }: TriggerArgument,
  isEnabled: boolean,
): TableFence {
  const isAny = isPrefix && scope === `${key}lease:`;
  return { table: `${schema}.${table}`, key: isAny ? null : key, isPrefix, since, isEnabled };
}

async function checkInstalled(link: PostgresLink, to: Administered): Promise<void> {
  if ((await installedVersion(link, to.schema)) !== null) return;
  const problem = `there is no schema '${to.schema}'. Run 'holdfast store install' first.`;
  throw new StoreUnsuitableError({ store: to.name, problems: [problem] });
}

/**
 * A trigger for statements fires only for the table that a statement names. So a table with parts,
 * or one that is a part, could be written without it.
 */
async function checkTable(link: PostgresLink, { schema, table }: Qualified): Promise<void> {
  const sql = `SELECT CASE WHEN c.relkind = 'p' OR c.relispartition THEN 'partitioned'
      WHEN EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid OR inhparent = c.oid) THEN 'inherited'
      WHEN c.relkind <> 'r' THEN 'no table' ELSE 'table' END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ${literal(schema)} AND c.relname = ${literal(table)}`;
  const kind = await link.query(within(LOCK_MS, sql));
  if (kind === 'table') return;
  throw new ConfigError({ field: 'TABLE', value: `${schema}.${table}`, rule: ruleFor(kind) });
}

function ruleFor(kind: string | null): string {
  if (kind === null)
    return 'there is no table of this name: check the name, its case and its schema';
  if (kind === 'no table') return 'it is not a table: fence the table that the rows are in';
  return `it is ${kind}, and a statement on a part of it would pass the fence: use guard in the transactions that write it`;
}

function refuse(error: unknown, to: Administered, table: string): never {
  if (!isServerError(error)) throw error;
  if (error.code === '42501') {
    const advice =
      'Use the address of a role that owns the table, or that has TRIGGER on it, and that may EXECUTE fence_write.';
    throw refusal(to, error.message, advice, error);
  }
  if (error.code === '55P03') {
    const advice = `Open transactions write it. Try again, or look for them with 'holdfast doctor'.`;
    throw refusal(to, `${table} stays locked`, advice, error);
  }
  throw error;
}

function refusal(to: Administered, reply: string, advice: string, cause?: unknown): Error {
  const facts = { store: to.name, operation: 'fence', reply, advice: `${advice} Nothing changed.` };
  return new StoreRefusedError(facts, cause === undefined ? {} : { cause });
}
