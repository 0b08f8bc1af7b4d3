/** In which order a PostgreSQL database has committed grants of leases, and rows of guarded transactions. */
import { hostMs } from '../test/support/host-clock.ts';
import type { Entry } from './history.ts';

/** What guarded transactions write. */
export const WRITES = `CREATE TABLE chaos_write
  (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, target text, fence bigint, by text)`;

/** Writes down every grant, without a lock: for `timedCommits`. */
export const GRANTS = `CREATE TABLE chaos_grant (target text, fence bigint);
  CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO public.chaos_grant SELECT substr(NEW.key, ${'poll:lease:'.length + 1}), NEW.fence
    WHERE starts_with(NEW.key, 'poll:lease:');
    RETURN NULL;
  END $$;
  CREATE TRIGGER chaos_made AFTER INSERT ON holdfast.lease FOR EACH ROW EXECUTE FUNCTION chaos_note();
  CREATE TRIGGER chaos_changed AFTER UPDATE ON holdfast.lease FOR EACH ROW
    WHEN (OLD.fence <> NEW.fence) EXECUTE FUNCTION chaos_note()`;

interface Database {
  sql<Row extends object>(text: string): Promise<Row[]>;
}

/**
 * Commits in the order of their timestamps, which a standby has, too, as opposed to what is decoded below. A grant that
 * waited for a transaction has a later one: the server takes the time of a commit before it ends its locks.
 */
export async function timedCommits(database: Database): Promise<Entry[]> {
  interface Row {
    readonly what: string;
    readonly target: string;
    readonly fence: string;
    readonly by: string | null;
    readonly ms: number;
  }
  const rows = await database.sql<Row>(`
    SELECT *, extract(epoch FROM at)::float8 * 1000 AS ms FROM (
      SELECT 'commit.write' AS what, target, fence, by, pg_xact_commit_timestamp(xmin) AS at FROM chaos_write
      UNION ALL SELECT 'commit.grant', target, fence, NULL, pg_xact_commit_timestamp(xmin) FROM chaos_grant
    ) AS commits ORDER BY at, what DESC`);
  return rows.map(({ what, target, fence, by, ms }, order) => {
    return { ...DATABASE, atMs: onHostClock(ms), what, target, fence: Number(fence), by, order };
  });
}

/** From here on the server keeps what is decoded below. */
export const SLOT = `SELECT pg_create_logical_replication_slot('chaos', 'test_decoding')`;

const LEASES = 'poll:lease:';
const DATABASE = { who: 'database', atMs: 0 };

/** Logical decoding: whole transactions in the order of their commits, as the server's log has it. */
export async function decodedCommits(database: Database): Promise<Entry[]> {
  const rows = await database.sql<{ data: string }>(`
    SELECT data FROM pg_logical_slot_peek_changes('chaos', NULL, NULL, 'include-timestamp', 'on', 'skip-empty-xacts', 'on')
    WHERE data ~ '^(COMMIT|table holdfast.lease: (INSERT|UPDATE)|table public.chaos_write: INSERT)'`);
  return commitsOf(rows.map(({ data }) => data));
}

/** Reads lines of the plugin test_decoding. */
export function commitsOf(lines: readonly string[]): Entry[] {
  const commits: Entry[] = [];
  const granted = new Map<string, number>();
  let open: Entry[] = [];
  for (const line of lines) {
    const commit = /^COMMIT \d+ \(at (.*)\)$/.exec(line)?.[1];
    if (commit !== undefined) {
      const atMs = onHostClock(Date.parse(commit.replace(/\+00$/, 'Z')));
      for (const entry of open) commits.push({ ...entry, atMs, order: commits.length });
      open = [];
      continue;
    }
    const entry = changeOf(line);
    if (entry === null) continue;
    const { what, target = '', fence } = entry;
    // A renewal changes the row, and not its fence.
    if (what === 'commit.grant' && granted.get(target) === fence) continue;
    if (what === 'commit.grant') granted.set(target, Number(fence));
    open.push(entry);
  }
  return commits;
}

/** Its time is not known yet. */
function changeOf(line: string): Entry | null {
  // An update that changes the fence has the old key first.
  const [, changed = line] = line.split(' new-tuple: ');
  const fence = Number(/fence\[bigint\]:(\d+)/.exec(changed)?.[1]);
  if (line.startsWith('table holdfast.lease:')) {
    const key = /key\[text\]:'([^']*)'/.exec(changed)?.[1] ?? '';
    if (!key.startsWith(LEASES)) return null;
    return { ...DATABASE, what: 'commit.grant', target: key.slice(LEASES.length), fence };
  }
  const target = /target\[text\]:'([^']*)'/.exec(changed)?.[1] ?? '';
  const by = /by\[text\]:'([^']*)'/.exec(changed)?.[1];
  return { ...DATABASE, what: 'commit.write', target, fence, by };
}

/** A moment of the wall clock, on the clock that all histories have. */
function onHostClock(wallMs: number): number {
  return wallMs - Date.now() + hostMs();
}
