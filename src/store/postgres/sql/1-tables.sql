-- Tables of the coordination layer. Times are microseconds since 1970, as `clock_us()` reads them.
-- A key, collection or topic begins with the prefix of its store; other tables have a `scope`.

-- One row: what this store is, and since when it may have lost grants.
CREATE TABLE IF NOT EXISTS marker (
  id int PRIMARY KEY CHECK (id = 1),
  format int NOT NULL,
  origin text NOT NULL,
  -- A new era begins whenever the server may have lost grants. `since` is when; null: it never has.
  era text NOT NULL,
  since bigint,
  -- The server that wrote this row, and its timeline. A promoted standby has another timeline.
  system text NOT NULL,
  timeline text NOT NULL,
  -- Whether the last era-checked grant waited for a synchronous standby.
  synchronous boolean NOT NULL,
  -- Every fence is higher: the highest fence of all rows that `sweep` has removed.
  floor bigint NOT NULL DEFAULT 0,
  -- The bounds of TTLs per keyspace, in milliseconds, as JSON; null until a process takes leases.
  bounds text
);

CREATE TABLE IF NOT EXISTS lease (
  key text COLLATE "C" PRIMARY KEY,
  -- NULL: free. '!revoked': a tombstone.
  holder text,
  fence bigint NOT NULL,
  -- Never indexed: an index on it ends HOT updates.
  until bigint NOT NULL,
  -- A forced revocation minted the fence: the holder's next renewal can tell it from an expiry.
  revoked boolean NOT NULL DEFAULT false,
  -- The era in whose quarantine the key was handed over.
  offer text,
  -- Until when the row is kept for its fence.
  kept bigint NOT NULL,
  -- The keepalive that it is attached to: the lease lives until the later of both times.
  keepalive text COLLATE "C",
  -- Makes a change of fence a change of a key column, which waits for FOR KEY SHARE: see `guard`.
  CONSTRAINT lease_fence UNIQUE (key, fence)
) WITH (fillfactor = 50);

-- One row renews all leases of a process that are attached to it. A row that is gone is buried: its
-- id is never used again.
CREATE TABLE IF NOT EXISTS keepalive (
  id text COLLATE "C" PRIMARY KEY,
  -- Grows with each renewal that attaches leases.
  version bigint NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 50);
-- A lease that is no longer attached, until the process of the keepalive has acknowledged it.
CREATE TABLE IF NOT EXISTS detachment (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  keepalive text COLLATE "C" NOT NULL REFERENCES keepalive ON DELETE CASCADE,
  key text COLLATE "C" NOT NULL
);
CREATE INDEX IF NOT EXISTS detachment_of_keepalive ON detachment (keepalive);

-- The inboxes that wait for a key. `woken`: when a hint was to be sent. The row then stays until the
-- waiter asks again, so that a hint that was lost is found (`hint_listen`).
CREATE TABLE IF NOT EXISTS line (
  key text COLLATE "C" NOT NULL,
  inbox text COLLATE "C" NOT NULL,
  since bigint NOT NULL,
  until bigint NOT NULL,
  woken bigint,
  PRIMARY KEY (key, inbox)
);
CREATE INDEX IF NOT EXISTS line_woken ON line (woken) WHERE woken IS NOT NULL;

CREATE TABLE IF NOT EXISTS member (
  scope text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  attributes text NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (scope, id)
) WITH (fillfactor = 50);

-- A process that has subscribers. `polls`: it cannot LISTEN, and reads `message` instead.
CREATE TABLE IF NOT EXISTS process (
  owner text COLLATE "C" PRIMARY KEY,
  until bigint NOT NULL,
  polls boolean NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS listener (
  topic text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  PRIMARY KEY (topic, owner)
);
CREATE INDEX IF NOT EXISTS listener_of_process ON listener (owner);
CREATE TABLE IF NOT EXISTS message (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  payload text NOT NULL,
  at bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS message_of_process ON message (owner, id);
