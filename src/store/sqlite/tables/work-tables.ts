/**
 * The tables of streams, workflows and sessions that an intent started. A SQLite store has them in
 * its file, and a memory store in a database of its own, so both share one implementation.
 *
 * `lanes` has a row for each lane with entries, about its first entry. `due` is null while that
 * entry waits. Otherwise it is when the claim expires (`fence` > 0), or when a retry is due
 * (`fence` 0). So the next lanes are the beginnings of two indexes, however many lanes there are.
 *
 * An entry of an action's stream has the action's id, and its epoch as number. The rest is in
 * `actions`, so that an action can get another epoch while it is claimed.
 *
 * The number of a session is its order of creation. AUTOINCREMENT never gives a removed number
 * again, so a page continues where the one before ended. The keys and clients of a session are
 * removed when it ends. Its row keeps the number of clients.
 *
 * `runs` has a row for each workflow with a function, a step or a signal. A run that was given out
 * has the phase `running`.
 *
 * Times are of the store's clock, except `at`, `created`, `changed` and the `due` of runs, which
 * are
 * of the wall clock.
 */
export const WORK_TABLES = `
CREATE TABLE IF NOT EXISTS streams (
  number INTEGER PRIMARY KEY, scope TEXT NOT NULL, name TEXT NOT NULL, turn INTEGER NOT NULL, UNIQUE (scope, name)
);
CREATE TABLE IF NOT EXISTS lanes (
  stream INTEGER NOT NULL, lane TEXT NOT NULL, entry INTEGER NOT NULL, priority INTEGER NOT NULL, turn INTEGER NOT NULL,
  due REAL, fence INTEGER NOT NULL, consumer TEXT, tries INTEGER NOT NULL, PRIMARY KEY (stream, lane)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lanes_waiting ON lanes (stream, priority DESC, turn) WHERE due IS NULL;
CREATE INDEX IF NOT EXISTS lanes_due ON lanes (stream, due) WHERE due IS NOT NULL;
CREATE TABLE IF NOT EXISTS entries (
  stream INTEGER NOT NULL, lane TEXT NOT NULL, number INTEGER NOT NULL, priority INTEGER NOT NULL, json TEXT NOT NULL,
  PRIMARY KEY (stream, lane, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead (
  number INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL, lane TEXT NOT NULL, json TEXT NOT NULL,
  tries INTEGER NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS dead_of_stream ON dead (stream, number);
CREATE TABLE IF NOT EXISTS deliveries (id INTEGER PRIMARY KEY CHECK (id = 1), fence INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS workflows (
  number INTEGER PRIMARY KEY, scope TEXT NOT NULL, id TEXT NOT NULL, lease_id TEXT, phase TEXT NOT NULL,
  epoch INTEGER NOT NULL, updated_epoch INTEGER, state TEXT NOT NULL, inbox TEXT NOT NULL, unresolved INTEGER NOT NULL,
  parked INTEGER NOT NULL, unread INTEGER NOT NULL, last_result INTEGER NOT NULL, last_event INTEGER NOT NULL,
  created REAL NOT NULL, changed REAL NOT NULL, UNIQUE (scope, id)
);
CREATE INDEX IF NOT EXISTS tenures ON workflows (scope, lease_id) WHERE lease_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS actions (
  workflow INTEGER NOT NULL, id TEXT NOT NULL, target TEXT NOT NULL, epoch INTEGER NOT NULL, lease_id TEXT NOT NULL,
  priority INTEGER NOT NULL, body TEXT NOT NULL, parked INTEGER NOT NULL, PRIMARY KEY (workflow, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS actions_of_target ON actions (workflow, target, epoch);
CREATE INDEX IF NOT EXISTS actions_parked ON actions (workflow, epoch) WHERE parked = 1;
CREATE TABLE IF NOT EXISTS taken (
  workflow INTEGER NOT NULL, target TEXT NOT NULL, epoch INTEGER NOT NULL, action TEXT NOT NULL,
  PRIMARY KEY (workflow, target)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
  workflow INTEGER NOT NULL, position INTEGER NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL,
  epoch INTEGER NOT NULL, outcome TEXT NOT NULL, json TEXT NOT NULL, at REAL NOT NULL, unread INTEGER NOT NULL,
  known INTEGER NOT NULL, PRIMARY KEY (workflow, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS results_unread ON results (workflow, position) WHERE unread = 1;
CREATE INDEX IF NOT EXISTS results_of_action ON results (workflow, action) WHERE known = 1;
CREATE TABLE IF NOT EXISTS history (
  workflow INTEGER NOT NULL, position INTEGER NOT NULL, at REAL NOT NULL, epoch INTEGER NOT NULL, lease_id TEXT,
  what TEXT NOT NULL, PRIMARY KEY (workflow, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
  workflow INTEGER PRIMARY KEY, scope TEXT NOT NULL, function TEXT, phase TEXT NOT NULL, due REAL, tries INTEGER NOT NULL,
  waits TEXT NOT NULL, value TEXT NOT NULL, input TEXT NOT NULL, steps INTEGER NOT NULL, signals INTEGER NOT NULL,
  bytes INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_due ON runs (scope, function, due) WHERE due IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_resting ON runs (scope, function, due) WHERE due IS NOT NULL AND phase <> 'running';
CREATE INDEX IF NOT EXISTS runs_given ON runs (scope, function, due) WHERE due IS NOT NULL AND phase = 'running';
CREATE TABLE IF NOT EXISTS run_steps (
  workflow INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, done INTEGER NOT NULL, json TEXT NOT NULL,
  at REAL NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (workflow, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_signals (
  workflow INTEGER NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, json TEXT NOT NULL, at REAL NOT NULL,
  number INTEGER NOT NULL, received INTEGER NOT NULL, PRIMARY KEY (workflow, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (
  number INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL,
  kind TEXT NOT NULL, label TEXT NOT NULL, state TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL, status TEXT NOT NULL, priority INTEGER NOT NULL,
  clients INTEGER NOT NULL, created REAL NOT NULL, changed REAL NOT NULL, UNIQUE (scope, id)
);
CREATE INDEX IF NOT EXISTS sessions_made ON sessions (scope, number);
CREATE INDEX IF NOT EXISTS sessions_of_tenant ON sessions (scope, tenant, number);
CREATE INDEX IF NOT EXISTS sessions_of_kind ON sessions (scope, kind, number);
CREATE INDEX IF NOT EXISTS sessions_of_label ON sessions (scope, kind, label, number);
CREATE INDEX IF NOT EXISTS sessions_open ON sessions (scope, number) WHERE state <> 'ENDED';
CREATE INDEX IF NOT EXISTS sessions_open_of_tenant ON sessions (scope, tenant, number) WHERE state <> 'ENDED';
CREATE INDEX IF NOT EXISTS sessions_ended ON sessions (scope, changed) WHERE state = 'ENDED';
CREATE TABLE IF NOT EXISTS session_keys (
  scope TEXT NOT NULL, key TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_of_session ON session_keys (session);
CREATE TABLE IF NOT EXISTS session_clients (
  session INTEGER NOT NULL, client TEXT NOT NULL, PRIMARY KEY (session, client)
) WITHOUT ROWID;
`;
