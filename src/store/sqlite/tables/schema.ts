import { StoreUnsuitableError } from '../../../core/errors.ts';
import { STORE_FORMAT, UNFINISHED_FORMAT, UNFINISHED_PROBLEM } from '../../port/store.ts';
import type { SqliteConnection } from '../file/sqlite-connection.ts';
import { WORK_TABLES } from './work-tables.ts';

/** 'Hdft': marks the file as Holdfast's in its header. */
const APPLICATION_ID = 0x48646674;

/**
 * Times are milliseconds of the store's clock (`StoreClock`). A lease is one row. Whatever ends its
 * attachment to a keepalive leaves a detachment, which triggers see to: no verb can forget it.
 */
const TABLES = `
CREATE TABLE marker (
  id INTEGER PRIMARY KEY CHECK (id = 1), boot TEXT NOT NULL, skew REAL NOT NULL, latest REAL NOT NULL,
  file TEXT NOT NULL, origin TEXT NOT NULL, era TEXT NOT NULL, since REAL
);
CREATE TABLE bounds (name TEXT PRIMARY KEY, ttl REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE leases (
  key TEXT PRIMARY KEY, holder TEXT NOT NULL, expires REAL NOT NULL, keepalive TEXT
) WITHOUT ROWID;
CREATE TABLE keepalives (key TEXT PRIMARY KEY, version INTEGER NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE detachments (number INTEGER PRIMARY KEY AUTOINCREMENT, keepalive TEXT NOT NULL, lease TEXT NOT NULL);
CREATE INDEX detachments_of_keepalive ON detachments (keepalive);
CREATE TRIGGER lease_detached AFTER UPDATE OF keepalive ON leases
WHEN OLD.keepalive IS NOT NULL AND OLD.keepalive IS NOT NEW.keepalive BEGIN
  INSERT INTO detachments (keepalive, lease) SELECT key, OLD.key FROM keepalives WHERE key = OLD.keepalive;
END;
CREATE TRIGGER lease_deleted AFTER DELETE ON leases WHEN OLD.keepalive IS NOT NULL BEGIN
  INSERT INTO detachments (keepalive, lease) SELECT key, OLD.key FROM keepalives WHERE key = OLD.keepalive;
END;
CREATE TRIGGER keepalive_deleted AFTER DELETE ON keepalives BEGIN
  DELETE FROM detachments WHERE keepalive = OLD.key;
END;
CREATE TABLE fences (
  key TEXT PRIMARY KEY, fence INTEGER NOT NULL, revoked INTEGER NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE lines (
  key TEXT NOT NULL, inbox TEXT NOT NULL, since REAL NOT NULL, expires REAL NOT NULL, PRIMARY KEY (key, inbox)
) WITHOUT ROWID;
CREATE TABLE members (
  scope TEXT NOT NULL, id TEXT NOT NULL, attributes TEXT NOT NULL, expires REAL NOT NULL, PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE TABLE records (
  collection TEXT NOT NULL, id TEXT NOT NULL, json TEXT, revision INTEGER NOT NULL, fence INTEGER NOT NULL,
  version INTEGER NOT NULL, expires REAL, PRIMARY KEY (collection, id)
) WITHOUT ROWID;
CREATE INDEX changes ON records (collection, version);
CREATE INDEX removals ON records (collection, version) WHERE json IS NULL;
CREATE TABLE collections (name TEXT PRIMARY KEY, version INTEGER NOT NULL, forgotten INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE listeners (
  topic TEXT NOT NULL, owner TEXT NOT NULL, expires REAL NOT NULL, PRIMARY KEY (topic, owner)
) WITHOUT ROWID;
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, sender TEXT NOT NULL, message TEXT NOT NULL, at REAL NOT NULL
);
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${STORE_FORMAT};
`;

/** Tables that older files of this format lack. */
const LATER_TABLES = `
CREATE TABLE IF NOT EXISTS offers (
  key TEXT PRIMARY KEY, era TEXT NOT NULL, fence INTEGER NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log (
  scope TEXT NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, json TEXT NOT NULL, PRIMARY KEY (scope, number)
) WITHOUT ROWID;
${WORK_TABLES}`;

/** One statement reads one moment: another process may be making the tables just now. */
const WHOSE = `
SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
FROM pragma_application_id, pragma_user_version`;

/**
 * Whether the file has no tables yet. Throws for another program's file, or another format. A file
 * with an unfinished copy is opened by a copy alone.
 */
export function isNew(connection: SqliteConnection, store: string, unfinished = false): boolean {
  const [application, format, tables] = connection.row<[number, number, number]>(WHOSE) ?? [
    0, 0, 0,
  ];
  const refuse = (problem: string) => new StoreUnsuitableError({ store, problems: [problem] });
  if (application === APPLICATION_ID) {
    if (format === STORE_FORMAT || (format === UNFINISHED_FORMAT && unfinished)) return false;
    if (format === UNFINISHED_FORMAT) throw refuse(UNFINISHED_PROBLEM);
    throw refuse(
      `The file has format ${format}, and this version of Holdfast knows format ${STORE_FORMAT}. ` +
        'Use the version that made it, or another file.',
    );
  }
  if (application === 0 && format === 0 && tables === 0) return true;
  throw refuse(
    'The file is a database of another program, and was not changed. Give Holdfast a file of its own.',
  );
}

/** Runs inside the caller's transaction, so that only one process makes the tables. */
export function makeTables(connection: SqliteConnection): void {
  connection.exec(TABLES);
}

/** Runs inside the caller's transaction. Writes only the tables that are missing. */
export function completeTables(connection: SqliteConnection): void {
  connection.exec(LATER_TABLES);
}
