import {
  COPIED_WORKFLOWS_PAGE,
  COPY_PAGE,
  isCollection,
  isLeaseKey,
  normalised,
} from '../../copied.ts';
import type {
  CopiedLane,
  CopiedSession,
  CopyEntries,
  CopyNoun,
  CopyStore,
} from '../../port/copy-store.ts';
import { FENCE_RECORD_MS } from '../../port/lease-store.ts';
import { type Call, STORE_FORMAT, UNFINISHED_FORMAT } from '../../port/store.ts';
import type { Value } from '../driver/driver.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import { readCopied, writeCopied } from '../tables/copied-workflows.ts';
import type { SessionColumns } from '../tables/intents.ts';
import { ensureStream } from '../tables/lanes.ts';
import { findWorkflow } from '../tables/workflows.ts';

/** The last character: names with a prefix lie between `prefix` and `prefix + LAST`. */
const LAST = '\u{10ffff}';

/** One page after a row, which its reader chose; and the row to continue after, if any. */
interface Page<Entry> {
  readonly entries: Entry[];
  readonly after?: readonly Value[];
}
type Reader<N extends CopyNoun> = (tx: Tx, after: readonly Value[]) => Page<CopyEntries[N]>;
type Writer<N extends CopyNoun> = (tx: Tx, entry: CopyEntries[N]) => void;

export function sqliteCopies(transactions: Transactions): CopyStore {
  return {
    isUnfinished: (call) =>
      transactions.readOne('copy', call, ({ connection }) => {
        return connection.value('PRAGMA user_version') === UNFINISHED_FORMAT;
      }),
    async begin(call) {
      await transactions.writeOne('copy', call, (tx) => {
        tx.connection.exec(`PRAGMA user_version = ${UNFINISHED_FORMAT}`);
        erase(tx);
      });
    },
    async finish(call) {
      await transactions.writeOne('copy', call, ({ connection }) =>
        connection.exec(`PRAGMA user_version = ${STORE_FORMAT}`),
      );
    },
    async *export(noun, call) {
      let after: readonly Value[] | undefined = [];
      while (after !== undefined) {
        const from: readonly Value[] = after;
        const read = READERS[noun];
        const page = await transactions.readOne('copy', call, (tx) => read(tx, from));
        if (page.entries.length > 0) yield page.entries;
        after = page.after;
      }
    },
    async import(noun, items, call) {
      const each: Writer<typeof noun> = WRITERS[noun];
      await transactions.write({ operation: 'copy', items, each }, call);
    },
    fenceClock: (call: Call) => transactions.readOne('copy', call, (tx) => tx.fenceTime()),
  };
}

const READERS: { readonly [N in CopyNoun]: Reader<N> } = {
  fences: readFences,
  records: readRecords,
  workflows: readWorkflows,
  sessions: readSessions,
  streams: readStreams,
  lanes: readLanes,
  dead: readDead,
};

const WRITERS: { readonly [N in CopyNoun]: Writer<N> } = {
  fences({ connection, scope, nowMs }, { key, fence }) {
    if (key === null) {
      const sql =
        'INSERT INTO deliveries VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET fence = max(fence, excluded.fence)';
      connection.run(sql, fence);
      return;
    }
    const sql = `INSERT INTO fences VALUES (?, ?, 0, ?) ON CONFLICT (key) DO UPDATE
      SET fence = max(fence, excluded.fence), expires = max(expires, excluded.expires)`;
    connection.run(sql, scope + key, fence, nowMs + FENCE_RECORD_MS);
  },
  records({ connection, scope, wallMs }, { collection, id, json, revision, fence }) {
    const name = scope + collection;
    const next = `INSERT INTO collections VALUES (?, ?, 0)
      ON CONFLICT (name) DO UPDATE SET version = max(version + 1, excluded.version) RETURNING version`;
    const now = Math.floor(wallMs * 1_000);
    const [version = 0] = connection.row<[number]>(next, name, now) ?? [];
    const sql = 'INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, NULL)';
    connection.run(sql, name, id, json, revision, fence, version);
  },
  workflows: writeCopied,
  sessions: writeSession,
  streams: (tx, { name }) => void ensureStream(tx, name),
  lanes: writeLane,
  dead(tx, { stream, lane, json, tries, reason, atMs }) {
    const sql =
      'INSERT INTO dead (stream, lane, json, tries, reason, at) VALUES (?, ?, ?, ?, ?, ?)';
    tx.connection.run(sql, ensureStream(tx, stream), lane, json, tries, reason, atMs);
  },
};

/** `after` is of the last row that was read, even if it is not an entry of this store. */
function pageOf<Row, Entry>(
  rows: readonly Row[],
  { size = COPY_PAGE, entry, after }: PageOptions<Row, Entry>,
): Page<Entry> {
  const entries = rows.flatMap((row) => entry(row) ?? []);
  const last = rows.length < size ? undefined : rows.at(-1);
  return last === undefined ? { entries } : { entries, after: after(last) };
}

interface PageOptions<Row, Entry> {
  readonly size?: number;
  /** Null for a row that is left out. */
  entry(row: Row): Entry | null;
  after(row: Row): readonly Value[];
}

/** Deliveries of all prefixes have one counter; each copy takes it along. */
function readFences({ connection, scope }: Tx, [after]: readonly Value[]) {
  const sql = 'SELECT key, fence FROM fences WHERE key > ? AND key < ? ORDER BY key LIMIT ?';
  const rows = connection.rows<[string, number]>(sql, after ?? scope, scope + LAST, COPY_PAGE);
  const page = pageOf(rows, {
    entry: ([name, fence]) => {
      const key = name.slice(scope.length);
      return isLeaseKey(key) ? { key: key as string | null, fence } : null;
    },
    after: ([name]) => [name],
  });
  const delivered = connection.row<[number]>('SELECT fence FROM deliveries');
  if (after !== undefined || delivered === undefined) return page;
  return { ...page, entries: [{ key: null, fence: delivered[0] }, ...page.entries] };
}

function readRecords({ connection, scope }: Tx, [collection, id]: readonly Value[]) {
  const sql = `SELECT collection, id, json, revision, fence FROM records
    WHERE (collection, id) > (?, ?) AND collection < ? AND json IS NOT NULL ORDER BY collection, id LIMIT ?`;
  const from = [collection ?? scope, id ?? ''];
  const rows = connection.rows<[string, string, string, number, number]>(
    sql,
    ...from,
    scope + LAST,
    COPY_PAGE,
  );
  return pageOf(rows, {
    entry: ([name, recordId, json, revision, fence]) => {
      const of = name.slice(scope.length);
      return isCollection(of) ? { collection: of, id: recordId, json, revision, fence } : null;
    },
    after: ([name, recordId]) => [name, recordId],
  });
}

function readWorkflows(tx: Tx, [after]: readonly Value[]) {
  const sql = 'SELECT id FROM workflows WHERE scope = ? AND id > ? ORDER BY id LIMIT ?';
  const rows = tx.connection.rows<[string]>(sql, tx.scope, after ?? '', COPIED_WORKFLOWS_PAGE);
  return pageOf(rows, {
    size: COPIED_WORKFLOWS_PAGE,
    entry: ([id]) => {
      const found = findWorkflow(tx, id);
      return found === undefined ? null : normalised(readCopied(tx, found));
    },
    after: (row) => row,
  });
}

type SessionTexts = [id: string, tenant: string, kind: string, label: string, state: string];
type SessionRow = [number, ...SessionTexts, ...SessionColumns];

function readSessions({ connection, scope }: Tx, [after]: readonly Value[]) {
  const sql = `SELECT number, id, tenant, kind, hex(label), state, revision, body, status, priority, clients, created, changed
    FROM sessions WHERE scope = ? AND number > ? ORDER BY number LIMIT ?`;
  const rows = connection.rows<SessionRow>(sql, scope, after ?? 0, COPY_PAGE);
  const names = (query: string, number: number) =>
    connection.rows<[string]>(query, number).map(([name]) => name);
  return pageOf(rows, {
    entry: ([number, id, tenant, kind, label, state, revision, body, status, ...rest]) => {
      const [priority, clientCount, created, changed] = rest;
      const keys = 'SELECT key FROM session_keys WHERE session = ? ORDER BY key';
      const clients = 'SELECT client FROM session_clients WHERE session = ? ORDER BY client';
      return {
        id,
        tenant,
        kind,
        label: textIn(label),
        state,
        revision,
        body,
        status,
        priority,
        clientCount,
        createdMs: Math.floor(created),
        changedMs: Math.floor(changed),
        keys: names(keys, number),
        clients: names(clients, number),
      };
    },
    after: ([number]) => [number],
  });
}

function writeSession({ connection, scope }: Tx, session: CopiedSession): void {
  const { id, tenant, kind, label, state, revision, body, status, priority } = session;
  const { clientCount, createdMs, changedMs } = session;
  const sql = `INSERT INTO sessions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number`;
  const texts = [scope, id, tenant, kind, label, state, revision, body, status, priority];
  const row = connection.row<[number]>(sql, ...texts, clientCount, createdMs, changedMs);
  const [number = 0] = row ?? [];
  for (const key of session.keys)
    connection.run('INSERT INTO session_keys VALUES (?, ?, ?)', scope, key, number);
  for (const client of session.clients)
    connection.run('INSERT INTO session_clients VALUES (?, ?)', number, client);
}

function readStreams({ connection, scope }: Tx, [after]: readonly Value[]) {
  const sql = 'SELECT name FROM streams WHERE scope = ? AND name > ? ORDER BY name LIMIT ?';
  const rows = connection.rows<[string]>(sql, scope, after ?? '', COPY_PAGE);
  return pageOf(rows, { entry: ([name]) => ({ name }), after: (row) => row });
}

type LaneRow = [number, stream: string, lane: string, tries: number, due: number | null, number];

/** Pages count rows: a lane has no number that is the same in every store. */
function readLanes(tx: Tx, [skipped]: readonly Value[]) {
  const { connection, scope, nowMs, wallMs } = tx;
  const sql = `SELECT s.number, s.name, l.lane, l.tries, l.due, l.fence FROM streams s JOIN lanes l ON l.stream = s.number
    WHERE s.scope = ? ORDER BY s.name, l.due IS NOT NULL, CASE WHEN l.due IS NULL THEN -l.priority END,
      CASE WHEN l.due IS NULL THEN l.turn END, l.lane LIMIT ? OFFSET ?`;
  const from = Number(skipped ?? 0);
  const rows = connection.rows<LaneRow>(sql, scope, COPY_PAGE, from);
  const entries =
    'SELECT priority, json FROM entries WHERE stream = ? AND lane = ? ORDER BY number';
  return pageOf(rows, {
    entry: ([number, stream, lane, tries, due, fence]): CopiedLane => ({
      stream,
      lane,
      tries,
      dueUs: due === null ? null : Math.ceil((due - nowMs + wallMs) * 1_000),
      isClaimed: fence > 0,
      entries: connection
        .rows<[number, string]>(entries, number, lane)
        .map(([priority, json]) => ({ priority, json })),
    }),
    after: () => [from + COPY_PAGE],
  });
}

function writeLane(tx: Tx, { stream, lane, tries, dueUs, entries }: CopiedLane): void {
  const { connection, nowMs, wallMs } = tx;
  const number = ensureStream(tx, stream);
  const places: number[] = [];
  for (const { priority, json } of entries) {
    const place = Math.max((places.at(-1) ?? 0) + 1, epochOf(tx, { stream, lane, json }));
    connection.run(
      'INSERT INTO entries VALUES (?, ?, ?, ?, ?)',
      number,
      lane,
      place,
      priority,
      json,
    );
    places.push(place);
  }
  const [first, place] = [entries[0], places[0]];
  if (first === undefined || place === undefined) return;
  const turn = 'UPDATE streams SET turn = turn + 1 WHERE number = ? RETURNING turn';
  const [next = 0] = connection.row<[number]>(turn, number) ?? [];
  const due = dueUs === null ? null : dueUs / 1_000 - wallMs + nowMs;
  const sql = 'INSERT INTO lanes VALUES (?, ?, ?, ?, ?, ?, 0, NULL, ?)';
  connection.run(sql, number, lane, place, first.priority, next, due, tries);
}

/** The epoch of an action in its stream, which is its place in its lane; 0 for other entries. */
function epochOf(
  { connection, scope }: Tx,
  { stream, lane, json }: { readonly stream: string; readonly lane: string; readonly json: string },
): number {
  if (!stream.startsWith('action:')) return 0;
  const sql = `SELECT a.epoch FROM workflows w JOIN actions a ON a.workflow = w.number
    WHERE w.scope = ? AND w.id = ? AND a.id = ?`;
  return connection.row<[number]>(sql, scope, lane, String(JSON.parse(json)))?.[0] ?? 0;
}

type DeadRow = [number, stream: string, lane: string, string, number, reason: string, at: number];

function readDead({ connection, scope }: Tx, [stream, number]: readonly Value[]) {
  const sql = `SELECT d.number, s.name, d.lane, d.json, d.tries, hex(d.reason), d.at FROM streams s JOIN dead d ON d.stream = s.number
    WHERE s.scope = ? AND (s.name, d.number) > (?, ?) ORDER BY s.name, d.number LIMIT ?`;
  const rows = connection.rows<DeadRow>(sql, scope, stream ?? '', number ?? 0, COPY_PAGE);
  return pageOf(rows, {
    entry: ([, name, lane, json, tries, reason, at]) => {
      return { stream: name, lane, json, tries, reason: textIn(reason), atMs: Math.floor(at) };
    },
    after: ([place, name]) => [name, place],
  });
}

/** The text of a column that may have a NUL: libsql would end it there. */
function textIn(hex: string): string {
  return Buffer.from(hex, 'hex').toString();
}

/** Fences stay: a higher fence does no harm. */
function erase({ connection, scope }: Tx): void {
  const children = ['actions', 'taken', 'results', 'history', 'runs', 'run_steps', 'run_signals'];
  for (const table of children)
    connection.run(
      `DELETE FROM ${table} WHERE workflow IN (SELECT number FROM workflows WHERE scope = ?)`,
      scope,
    );
  for (const table of ['lanes', 'entries', 'dead'])
    connection.run(
      `DELETE FROM ${table} WHERE stream IN (SELECT number FROM streams WHERE scope = ?)`,
      scope,
    );
  const clients = 'SELECT number FROM sessions WHERE scope = ?';
  connection.run(`DELETE FROM session_clients WHERE session IN (${clients})`, scope);
  for (const table of ['workflows', 'streams', 'session_keys', 'sessions'])
    connection.run(`DELETE FROM ${table} WHERE scope = ?`, scope);
  const names = connection
    .rows<[string]>('SELECT name FROM collections WHERE name > ? AND name < ?', scope, scope + LAST)
    .filter(([name]) => isCollection(name.slice(scope.length)));
  for (const [name] of names)
    for (const [table, column] of [
      ['records', 'collection'],
      ['collections', 'name'],
    ])
      connection.run(`DELETE FROM ${table} WHERE ${column} = ?`, name);
}
