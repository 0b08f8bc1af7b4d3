-- Leases: one function per verb of the port. Each takes JSON and returns JSON, with one reply per
-- request. Rows are locked in the order of their keys, so that batches cannot deadlock. First every
-- lock is tried without waiting; only for the rest, and only for `patience_us()` together, does a
-- verb wait. So a key that a guarded transaction keeps locked does not hold back other keys.
-- Each `q->>'…'` parses the whole request, so what every row needs is in a variable.
-- The tables are in 1-tables.sql. A keepalive is one row that renews many leases.

CREATE FUNCTION patience_us() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 50000::bigint $$;
-- A day, as FENCE_RECORD_MS.
CREATE FUNCTION fence_kept_us() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 86400000000::bigint $$;

-- The time that a verb may still wait for locks, which begins with its first wait.
CREATE FUNCTION wait_until(deadline bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('lock_timeout', greatest(1, (deadline - clock_us()) / 1000)::text, true);
END $$;

-- Tells the keepalive of a lease that the lease is no longer attached. A trigger calls it for every
-- such change, so that no verb can forget it. The lock orders this and a renewal of the keepalive:
-- the renewal sees the detachment, or whoever detaches has seen the new time.
-- What a trigger's WHEN compares is read and prepared again for each statement: most leases have no
-- keepalive, and one comparison tells. NEW is null where the lease was deleted.
-- Replaced, never dropped, as is `bury_keepalives`: triggers depend on it.
CREATE OR REPLACE FUNCTION tell_keepalive() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  IF (NEW.keepalive, NEW.holder, NEW.fence) IS NOT DISTINCT FROM (OLD.keepalive, OLD.holder, OLD.fence) THEN RETURN NULL; END IF;
  PERFORM FROM keepalive WHERE id = OLD.keepalive FOR SHARE;
  IF FOUND THEN INSERT INTO detachment (keepalive, key) VALUES (OLD.keepalive, OLD.key); END IF;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS lease_detached ON lease;
CREATE TRIGGER lease_detached AFTER UPDATE ON lease FOR EACH ROW
WHEN (OLD.keepalive IS NOT NULL)
EXECUTE FUNCTION tell_keepalive();
DROP TRIGGER IF EXISTS lease_deleted ON lease;
CREATE TRIGGER lease_deleted AFTER DELETE ON lease FOR EACH ROW WHEN (OLD.keepalive IS NOT NULL)
EXECUTE FUNCTION tell_keepalive();

-- TRUNCATE fires no trigger for a row. With all keepalives gone, every process renews by rows, and
-- finds that its leases have vanished.
CREATE OR REPLACE FUNCTION bury_keepalives() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  DELETE FROM keepalive;
  RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS lease_truncated ON lease;
CREATE TRIGGER lease_truncated AFTER TRUNCATE ON lease FOR EACH STATEMENT EXECUTE FUNCTION bury_keepalives();

-- Until when a lease lives, as a plain read sees it: enough to refuse, and never to take over.
CREATE FUNCTION lives_until(l lease) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF l.keepalive IS NULL THEN RETURN l.until; END IF;
  RETURN greatest(l.until, (SELECT until FROM keepalive WHERE id = l.keepalive));
END $$;

-- The same under the locks of the lease, which the caller has, and of its keepalive. A keepalive that
-- has lapsed is deleted under its lock: after a plain read, a renewal in flight could revive it. NULL:
-- another transaction has the keepalive, and the caller does not wait.
CREATE FUNCTION settle(l lease, waits boolean DEFAULT true) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE k keepalive;
BEGIN
  IF l.keepalive IS NULL THEN RETURN l.until; END IF;
  IF waits THEN
    SELECT * INTO k FROM keepalive WHERE id = l.keepalive FOR UPDATE;
  ELSE
    SELECT * INTO k FROM keepalive WHERE id = l.keepalive FOR UPDATE SKIP LOCKED;
    IF k.id IS NULL AND EXISTS (SELECT FROM keepalive WHERE id = l.keepalive) THEN RETURN NULL; END IF;
  END IF;
  IF k.until <= clock_us() THEN
    DELETE FROM keepalive WHERE id = k.id;
    RETURN l.until;
  END IF;
  RETURN greatest(l.until, k.until);
END $$;

-- Takes the first waiters with a live subscriber out of the line of a key that is free, and returns
-- the hints that wake them: topic and message. The caller's process sends them after the commit.
CREATE FUNCTION wake(scope text, name text, most int, apart int) RETURNS json[] LANGUAGE plpgsql AS $$
DECLARE
  w record;
  hints json[] := '{}';
  now bigint := clock_us();
  message text := substr(name, length(scope) + 1);
BEGIN
  FOR w IN SELECT inbox, until FROM line WHERE key = name AND woken IS NULL ORDER BY since LOOP
    IF w.until <= now OR NOT EXISTS (
      SELECT FROM listener l JOIN process p ON p.owner = l.owner WHERE l.topic = w.inbox AND p.until > now
    ) THEN
      DELETE FROM line WHERE key = name AND inbox = w.inbox;
      CONTINUE;
    END IF;
    UPDATE line SET woken = now WHERE key = name AND inbox = w.inbox AND woken IS NULL;
    IF FOUND THEN
      hints := hints || json_build_array(w.inbox,
        CASE WHEN cardinality(hints) * apart = 0 THEN message ELSE message || E'\n' || cardinality(hints) * apart END);
      EXIT WHEN cardinality(hints) = most;
    END IF;
  END LOOP;
  RETURN hints;
END $$;

-- Grants the keys that are new or free and that no transaction has locked. The first ask for a key
-- counts. Returns the numbers of the asks that were granted, with their fences and keys.
-- The time is read once, before any lock: no lock is waited for, and an earlier time grants less.
-- LATERAL: each key is looked up by itself. A plan is kept for as long as its session lives: made for
-- a table that is empty, any other join may read all of a large one for each key.
CREATE FUNCTION grant_free(asked_keys text[], asked_holders text[], asked_floors bigint[], ttl bigint, lowest bigint,
  OUT numbers int[], OUT fences bigint[], OUT granted text[])
LANGUAGE plpgsql AS $$
DECLARE
  now bigint := clock_us();
  sorted_keys text[];
  sorted_numbers int[];
  new_keys text[];
  new_fences bigint[];
  at int := 1;
BEGIN
  WITH free AS (
    SELECT a.n, a.holder, a.floor, l.place FROM (
      SELECT DISTINCT ON (t.key COLLATE "C") t.n::int, t.key, t.holder, t.floor
      FROM unnest(asked_keys, asked_holders, asked_floors) WITH ORDINALITY AS t(key, holder, floor, n)
      ORDER BY t.key COLLATE "C", t.n) a,
    LATERAL (
      SELECT l.ctid AS place FROM lease l WHERE l.key = a.key AND l.keepalive IS NULL AND (l.holder IS NULL OR l.until <= now)
      FOR UPDATE SKIP LOCKED) l
  ), taken_over AS (
    -- A row that has changed since the statement began is at another place: it is left to the caller.
    UPDATE lease l SET holder = f.holder, fence = greatest(l.fence + 1, now, f.floor, lowest + 1), until = now + ttl,
      revoked = false, offer = NULL, kept = now + fence_kept_us()
    FROM free f WHERE l.ctid = f.place AND l.keepalive IS NULL AND (l.holder IS NULL OR l.until <= now)
    RETURNING f.n, l.fence, l.key
  )
  SELECT coalesce(array_agg(n), '{}'), coalesce(array_agg(fence), '{}'), coalesce(array_agg(key), '{}')
  INTO numbers, fences, granted FROM taken_over;
  IF cardinality(numbers) = cardinality(asked_keys) THEN RETURN; END IF;
  SELECT array_agg(a.key), array_agg(a.n) INTO sorted_keys, sorted_numbers FROM (
    SELECT DISTINCT ON (t.key COLLATE "C") t.key, t.n::int FROM unnest(asked_keys) WITH ORDINALITY AS t(key, n)
    ORDER BY t.key COLLATE "C", t.n) a;
  WITH made AS (
    INSERT INTO lease (key, holder, fence, until, kept)
    SELECT a.key, asked_holders[a.n], greatest(now, asked_floors[a.n], lowest + 1), now + ttl, now + fence_kept_us()
    FROM unnest(sorted_keys, sorted_numbers) AS a(key, n) ORDER BY a.key COLLATE "C"
    ON CONFLICT (key) DO NOTHING RETURNING key, fence
  )
  SELECT coalesce(array_agg(key ORDER BY key), '{}'), coalesce(array_agg(fence ORDER BY key), '{}') INTO new_keys, new_fences FROM made;
  FOR i IN 1..cardinality(new_keys) LOOP
    WHILE sorted_keys[at] <> new_keys[i] LOOP at := at + 1; END LOOP;
    numbers := numbers || sorted_numbers[at];
    fences := fences || new_fences[i];
  END LOOP;
  granted := granted || new_keys;
END $$;

-- Any number of keys, in any state.
CREATE FUNCTION acquire_each(keys text[], holders text[], ttl bigint, standbys text, waiter text, quarantines bigint[],
  presented bigint[], floors bigint[], waits bigint[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  checked record;
  m marker;
  began text;
  a record;
  l lease;
  now bigint := clock_us();
  minted bigint;
  is_own boolean;
  keeps boolean;
  deadline bigint;
  late int[] := '{}';
  todo int[];
  replies json[];
  numbers int[];
  fences bigint[];
  granted text[];
BEGIN
  replies := array_fill(NULL::json, ARRAY[cardinality(keys)]);
  SELECT * INTO checked FROM check_era(standbys);
  m := checked.m;
  began := checked.began;
  -- Most keys of a batch are new or free: these are granted by two statements for all of them.
  IF cardinality(keys) > 1 AND (m.since IS NULL OR m.since + (SELECT max(b) FROM unnest(quarantines) AS b) <= now) THEN
    SELECT g.numbers, g.fences, g.granted INTO numbers, fences, granted FROM grant_free(keys, holders, floors, ttl, m.floor) g;
    IF waits <> '{}' THEN DELETE FROM line WHERE key = ANY (granted) AND inbox = waiter AND woken IS NOT NULL; END IF;
    IF cardinality(numbers) = cardinality(keys) THEN
      RETURN json_build_object('replies', (SELECT json_agg(f ORDER BY n) FROM unnest(numbers, fences) AS g(n, f)),
        'era', m.era, 'since', clock_us() - m.since, 'began', began, 'position', wal_position(), 'timeline', m.timeline);
    END IF;
    FOR i IN 1..cardinality(numbers) LOOP
      replies[numbers[i]] := to_json(fences[i]);
    END LOOP;
  END IF;
  SELECT coalesce(array_agg(i), '{}') INTO todo FROM generate_subscripts(replies, 1) AS i WHERE replies[i] IS NULL;
  FOR pass IN 1..2 LOOP
    EXIT WHEN (pass = 1 AND todo = '{}') OR (pass = 2 AND late = '{}');
    IF pass = 2 THEN deadline := clock_us() + patience_us(); END IF;
    FOR a IN
      SELECT t.n::int AS n, t.key, t.holder, t.fence, coalesce(t.floor, 0) AS floor, t.waited, coalesce(t.bound, quarantines[1]) AS bound
      FROM unnest(keys, holders, presented, floors, waits, quarantines) WITH ORDINALITY AS t(key, holder, fence, floor, waited, bound, n)
      WHERE t.n = ANY (CASE pass WHEN 1 THEN todo ELSE late END) ORDER BY t.key COLLATE "C", t.n
    LOOP
      now := clock_us();
      SELECT * INTO l FROM lease WHERE key = a.key;
      l.until := lives_until(l);
      -- A quarantine lets pass only a key that was handed over since it began, to its successor or,
      -- after the successor's window, to anyone.
      IF m.since + a.bound > now AND a.bound > 0 AND (l.key IS NULL OR l.offer IS DISTINCT FROM m.era
          OR (l.holder <> a.holder AND l.until > now)) THEN
        replies[a.n] := json_build_array((m.since + a.bound - now) / 1000.0);
        CONTINUE;
      END IF;
      IF l.key IS NULL THEN
        minted := greatest(now, a.floor, m.floor + 1);
        INSERT INTO lease (key, holder, fence, until, kept)
        VALUES (a.key, a.holder, minted, now + ttl, now + fence_kept_us()) ON CONFLICT (key) DO NOTHING;
        IF FOUND THEN
          replies[a.n] := to_json(minted);
          CONTINUE;
        END IF;
        SELECT * INTO l FROM lease WHERE key = a.key;
        l.until := lives_until(l);
      END IF;
      IF l.holder IS NULL OR l.until <= now OR l.holder = a.holder THEN
        -- A holder that presents its fence keeps it, and so need not wait for its own guard.
        keeps := coalesce(l.holder = a.holder AND l.until > now AND l.fence = a.fence, false);
        IF pass = 1 THEN
          IF keeps THEN
            SELECT * INTO l FROM lease WHERE key = a.key FOR NO KEY UPDATE SKIP LOCKED;
          ELSE
            SELECT * INTO l FROM lease WHERE key = a.key FOR UPDATE SKIP LOCKED;
          END IF;
          l.until := settle(l, false);
          IF l.key IS NULL OR l.until IS NULL THEN
            late := late || a.n;
            CONTINUE;
          END IF;
        ELSE
          BEGIN
            PERFORM wait_until(deadline);
            IF keeps THEN
              SELECT * INTO l FROM lease WHERE key = a.key FOR NO KEY UPDATE;
            ELSE
              SELECT * INTO l FROM lease WHERE key = a.key FOR UPDATE;
            END IF;
            l.until := settle(l);
          EXCEPTION WHEN lock_not_available THEN
            -- Another transaction decides about this key, or is guarded by it: ask again soon.
            replies[a.n] := json_build_array(coalesce(l.holder, ''), l.fence, patience_us() / 1000);
            CONTINUE;
          END;
        END IF;
        -- The clock is read again: the lock may have taken time.
        now := clock_us();
      END IF;
      is_own := coalesce(l.holder = a.holder AND l.until > now, false);
      IF l.holder IS NOT NULL AND l.until > now AND NOT is_own THEN
        IF a.waited IS NOT NULL THEN
          INSERT INTO line AS w (key, inbox, since, until)
          VALUES (a.key, waiter, now - a.waited, now + 2 * greatest(l.until - now, ttl))
          ON CONFLICT (key, inbox) DO UPDATE SET until = greatest(w.until, excluded.until), woken = NULL,
            since = CASE WHEN w.woken IS NULL THEN w.since ELSE excluded.since END;
        END IF;
        replies[a.n] := json_build_array(l.holder, l.fence, (l.until - now) / 1000.0);
        CONTINUE;
      END IF;
      IF a.waited IS NOT NULL THEN
        DELETE FROM line WHERE key = a.key AND inbox = waiter AND woken IS NOT NULL;
      END IF;
      IF is_own AND l.fence = a.fence THEN
        UPDATE lease SET until = greatest(l.until, now + ttl), keepalive = NULL, kept = now + fence_kept_us() WHERE key = a.key;
        replies[a.n] := to_json(l.fence);
      ELSE
        -- Minted under the lock of the row, never from a sequence: grants are in the order of fences.
        minted := greatest(l.fence + 1, now, a.floor, m.floor + 1);
        UPDATE lease SET holder = a.holder, fence = minted, revoked = false, offer = NULL, kept = now + fence_kept_us(),
          until = CASE WHEN is_own THEN greatest(l.until, now + ttl) ELSE now + ttl END, keepalive = NULL WHERE key = a.key;
        replies[a.n] := to_json(minted);
      END IF;
    END LOOP;
  END LOOP;
  RETURN json_build_object('replies', to_json(replies), 'era', m.era, 'since', clock_us() - m.since,
    'began', began, 'position', wal_position(), 'timeline', m.timeline);
END $$;

-- The asks are arrays: keys with their scope, holders, fences that holders present, floors, and how
-- long each has waited, in µs. `quarantines`: how long the keyspace of each key is in quarantine after a
-- loss, in µs; 0 where quarantine is off. An array of one value is of all asks; '{}': of none.
-- Returns replies, with what an examination knows: a fence, [left ms] in a quarantine, or [holder, fence, left ms].
CREATE FUNCTION lease_acquire(keys text[], holders text[], ttl bigint, standbys text, waiter text, quarantines bigint[],
  presented bigint[], floors bigint[], waits bigint[]) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  now bigint;
  reply text;
BEGIN
  IF cardinality(keys) = 1 THEN
    -- Most requests are for one key that is free, and no era has begun: one statement does it all. It
    -- is here because each expression of a function, and each variable's, is prepared in each transaction.
    now := clock_us();
    UPDATE lease AS mine SET holder = holders[1], fence = greatest(mine.fence + 1, now, floors[1], mark.floor + 1), until = now + ttl,
      revoked = false, offer = NULL, kept = now + fence_kept_us()
    FROM marker AS mark WHERE mark.timeline = timeline() AND mark.synchronous = is_synchronous()
      AND (mark.since IS NULL OR mark.since + quarantines[1] <= now)
      -- As in `grant_free`.
      AND mine.ctid = (SELECT f.ctid FROM lease f WHERE f.key = keys[1] AND f.keepalive IS NULL
        AND (f.holder IS NULL OR f.until <= now) FOR UPDATE SKIP LOCKED)
    RETURNING json_build_object('replies', ARRAY[mine.fence], 'era', mark.era, 'since', now - mark.since,
      'position', wal_position(), 'timeline', mark.timeline) INTO reply;
    IF FOUND THEN
      IF waits <> '{}' THEN DELETE FROM line WHERE key = keys[1] AND inbox = waiter AND woken IS NOT NULL; END IF;
      RETURN reply;
    END IF;
  END IF;
  RETURN acquire_each(keys, holders, ttl, standbys, waiter, quarantines, presented, floors, waits);
END $$;

-- request: scope, ttl (ms), keep, holdings: [[key, holder, fence or null]], attach: [id, isNew] or null.
-- Returns [failures, version, unattached]: of what is not renewed [index, holder, fence, revoked,
-- isLocked]; the version of the keepalive or null; the indexes of what is renewed and not attached.
CREATE FUNCTION lease_renew(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  scope text := q->>'scope';
  ttl bigint := ((q->>'ttl')::float8 * 1000)::bigint;
  target text := scope || (q->'attach'->>0);
  keeps boolean := q->>'keep';
  keys text[];
  holders text[];
  fences bigint[];
  left_ids text[] := '{}';
  done text[];
  attached text[];
  late text[];
  one text;
  deadline bigint;
  raised bigint;
  failures json;
  unattached json;
BEGIN
  SELECT array_agg(scope || (e->>0) ORDER BY n), array_agg(e->>1 ORDER BY n), array_agg((e->>2)::bigint ORDER BY n)
  INTO keys, holders, fences FROM json_array_elements(q->'holdings') WITH ORDINALITY AS t(e, n);
  IF target IS NOT NULL THEN
    -- Other keepalives that leases are about to leave. Their locks are taken first, so that their times
    -- stand. That is against the order of locks, but no lease is waited for longer than `patience_us`.
    SELECT coalesce(array_agg(id), '{}') INTO left_ids FROM (
      SELECT id FROM keepalive WHERE id IN (SELECT l.keepalive FROM lease l WHERE l.key = ANY (keys) AND l.keepalive <> target)
      ORDER BY id FOR SHARE) locked;
  END IF;
  WITH mine AS (
    -- An expired row is still there, and a late renewal must not revive it.
    SELECT l.key, h.fence FROM unnest(keys, holders, fences) AS h(key, holder, fence) JOIN lease l ON l.key = h.key
    WHERE l.holder = h.holder AND (l.until > clock_us()
      OR EXISTS (SELECT FROM keepalive a WHERE a.id = l.keepalive AND a.until > clock_us()))
    ORDER BY l.key FOR NO KEY UPDATE OF l SKIP LOCKED
  ), renewed AS (
    UPDATE lease l SET
      until = greatest(l.until, clock_us() + ttl, (SELECT a.until FROM keepalive a WHERE a.id = l.keepalive AND a.id = ANY (left_ids))),
      kept = CASE WHEN keeps THEN clock_us() + fence_kept_us() ELSE l.kept END,
      keepalive = CASE WHEN l.fence = mine.fence AND (l.keepalive IS NULL OR l.keepalive = ANY (left_ids)
        OR NOT EXISTS (SELECT FROM keepalive a WHERE a.id = l.keepalive)) THEN coalesce(target, l.keepalive) ELSE l.keepalive END
    FROM mine WHERE l.key = mine.key AND (l.until > clock_us()
      OR EXISTS (SELECT FROM keepalive a WHERE a.id = l.keepalive AND a.until > clock_us()))
    RETURNING l.key, l.fence = mine.fence AND l.keepalive = target AS is_attached
  )
  SELECT coalesce(array_agg(key), '{}'), coalesce(array_agg(key) FILTER (WHERE is_attached), '{}')
  INTO done, attached FROM renewed;
  IF cardinality(done) < cardinality(keys) THEN
    SELECT coalesce(array_agg(l.key ORDER BY l.key), '{}') INTO late
    FROM unnest(keys, holders) AS h(key, holder) JOIN lease l ON l.key = h.key
    WHERE l.holder = h.holder AND lives_until(l) > clock_us() AND l.key <> ALL (done);
    deadline := clock_us() + patience_us();
    FOREACH one IN ARRAY late LOOP
      BEGIN
        PERFORM wait_until(deadline);
        PERFORM FROM lease WHERE key = one FOR NO KEY UPDATE;
        UPDATE lease l SET until = greatest(until, clock_us() + ttl) WHERE key = one AND lives_until(l) > clock_us()
          AND holder = holders[array_position(keys, one)];
        IF FOUND THEN done := done || one; END IF;
        late := array_remove(late, one);
      EXCEPTION WHEN lock_not_available THEN NULL;
      END;
    END LOOP;
    SELECT json_agg(json_build_array(h.n, CASE WHEN lives_until(l) > clock_us() THEN l.holder END, coalesce(l.fence, 0),
      coalesce(l.revoked, false), h.key = ANY (late)))
    INTO failures
    FROM unnest(keys, holders) WITH ORDINALITY AS h(key, holder, n) LEFT JOIN lease l ON l.key = h.key
    WHERE h.key <> ALL (done) OR l.holder IS DISTINCT FROM h.holder;
  END IF;
  IF attached <> '{}' THEN
    -- A lease that names a keepalive which is gone lives by its own time.
    IF (q->'attach'->>1)::boolean THEN
      INSERT INTO keepalive VALUES (target, 1, clock_us() + ttl) ON CONFLICT DO NOTHING RETURNING version INTO raised;
    ELSE
      PERFORM FROM keepalive WHERE id = target FOR NO KEY UPDATE;
      UPDATE keepalive SET version = version + 1, until = greatest(until, clock_us() + ttl)
      WHERE id = target AND until > clock_us() RETURNING version INTO raised;
    END IF;
    IF cardinality(attached) < cardinality(keys) THEN
      SELECT json_agg(n) INTO unattached FROM unnest(keys) WITH ORDINALITY AS h(key, n) WHERE key <> ALL (attached);
    END IF;
  END IF;
  RETURN json_build_array(coalesce(failures, '[]'), raised, coalesce(unattached, '[]'));
END $$;

-- request: scope, id, ttl (ms), version, acknowledged: [number]. Returns 'null' if the keepalive has
-- lapsed, is buried or was lost; else what was detached: [[number, key]].
CREATE FUNCTION lease_keep_alive(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  scope text := q->>'scope';
  k keepalive;
  now bigint;
BEGIN
  SELECT * INTO k FROM keepalive WHERE id = scope || (q->>'id') FOR NO KEY UPDATE;
  -- The clock is read after the lock: what has lapsed is not revived.
  now := clock_us();
  IF k.id IS NULL OR k.until <= now OR k.version < (q->>'version')::bigint THEN RETURN 'null'; END IF;
  UPDATE keepalive SET until = greatest(until, now + ((q->>'ttl')::float8 * 1000)::bigint) WHERE id = k.id;
  IF json_array_length(q->'acknowledged') > 0 THEN
    -- By number, never up to one: transactions commit in another order.
    DELETE FROM detachment d WHERE d.keepalive = k.id
      AND d.number IN (SELECT n::bigint FROM json_array_elements_text(q->'acknowledged') AS n);
  END IF;
  RETURN coalesce((SELECT json_agg(json_build_array(d.number, substr(d.key, length(scope) + 1)) ORDER BY d.number)
    FROM detachment d WHERE d.keepalive = k.id), '[]');
END $$;

-- request: scope, ttl (ms), forgotten, standbys, tenures: [{key, holder, fence, bound}].
CREATE FUNCTION lease_reassert(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  ttl bigint := ((q->>'ttl')::float8 * 1000)::bigint;
  checked record;
  m marker;
  began text;
  t record;
  l lease;
  now bigint;
  replies boolean[] := array_fill(false, ARRAY[json_array_length(q->'tenures')]);
BEGIN
  SELECT * INTO checked FROM check_era(q->>'standbys');
  m := checked.m;
  began := checked.began;
  PERFORM FROM lease WHERE key IN (SELECT q->>'scope' || (e->>'key') FROM json_array_elements(q->'tenures') AS e)
  ORDER BY key FOR NO KEY UPDATE;
  FOR t IN
    SELECT n::int AS n, q->>'scope' || (e->>'key') AS key, e->>'holder' AS holder, (e->>'fence')::bigint AS fence,
      (e->>'bound')::bigint * 1000 AS bound
    FROM json_array_elements(q->'tenures') WITH ORDINALITY AS x(e, n)
    ORDER BY (q->>'scope' || (e->>'key')) COLLATE "C", n
  LOOP
    SELECT * INTO l FROM lease WHERE key = t.key FOR NO KEY UPDATE;
    l.until := settle(l);
    now := clock_us();
    IF l.key IS NOT NULL THEN
      CONTINUE WHEN (l.holder IS NOT NULL AND l.until > now) OR l.revoked OR l.fence <> t.fence;
      UPDATE lease SET holder = t.holder, until = now + ttl, keepalive = NULL WHERE key = t.key;
      replies[t.n] := true;
    ELSIF (q->>'forgotten')::boolean AND t.bound > 0 THEN
      -- The store must stop granting, for every process, before a lost lease is put back.
      IF m.since IS NULL OR m.since + t.bound <= now THEN
        PERFORM FROM marker FOR UPDATE;
        SELECT * INTO m FROM marker;
        IF m.since IS NULL OR m.since + t.bound <= now THEN
          began := 'a lease vanished under its holder';
          m := begin_era();
        END IF;
      END IF;
      INSERT INTO lease (key, holder, fence, until, kept)
      VALUES (t.key, t.holder, t.fence, now + ttl, now + fence_kept_us()) ON CONFLICT (key) DO NOTHING;
      replies[t.n] := FOUND;
    END IF;
  END LOOP;
  RETURN json_build_object('replies', to_json(replies), 'era', m.era, 'since', clock_us() - m.since, 'began', began);
END $$;

-- Frees one key. Returns false if the tenure does not hold it.
CREATE FUNCTION release_one(name text, tenant text, presented bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  UPDATE lease l SET holder = NULL, until = clock_us(), keepalive = NULL
  WHERE l.key = name AND l.holder = tenant AND l.fence = presented AND (l.until > clock_us()
    OR EXISTS (SELECT FROM keepalive a WHERE a.id = l.keepalive AND a.until > clock_us()));
  RETURN FOUND;
END $$;

-- Any number of tenures, in any state.
CREATE FUNCTION release_each(in_scope text, keys text[], holders text[], fences bigint[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  -- Read once: a lease that lapses while its row is waited for is as free as one that is released.
  now bigint := clock_us();
  numbers int[] := '{}';
  freed text[] := keys;
  woken text[] := '{}';
  hints json[] := '{}';
  added json[];
  one text;
  replies json;
BEGIN
  WITH mine AS (
    SELECT h.n, l.place FROM (
      SELECT t.n::int, t.key, t.holder, t.fence FROM unnest(keys, holders, fences)
        WITH ORDINALITY AS t(key, holder, fence, n) ORDER BY t.key COLLATE "C") h,
    LATERAL (
      SELECT l.ctid AS place FROM lease l WHERE l.key = h.key AND l.holder = h.holder AND l.fence = h.fence
        AND (l.until > now OR EXISTS (SELECT FROM keepalive a WHERE a.id = l.keepalive AND a.until > now))
      FOR NO KEY UPDATE) l
  ), gone AS (
    UPDATE lease l SET holder = NULL, until = now, keepalive = NULL FROM mine WHERE l.ctid = mine.place RETURNING mine.n
  )
  SELECT coalesce(array_agg(n), '{}') INTO numbers FROM gone;
  IF cardinality(numbers) < cardinality(keys) THEN
    -- A row that changed while it was waited for is locked, and at another place now.
    FOR i IN 1..cardinality(keys) LOOP
      IF i <> ALL (numbers) AND release_one(keys[i], holders[i], fences[i]) THEN numbers := numbers || i; END IF;
    END LOOP;
  END IF;
  IF cardinality(numbers) < cardinality(keys) THEN freed := ARRAY(SELECT keys[n] FROM unnest(numbers) AS n); END IF;
  FOR one IN SELECT DISTINCT key FROM line WHERE key = ANY (freed) ORDER BY key LOOP
    added := wake(in_scope, one, 1, 0);
    IF cardinality(added) > 0 THEN
      woken := woken || one;
      hints := hints || added;
    END IF;
  END LOOP;
  IF cardinality(numbers) < cardinality(keys) OR cardinality(woken) > 0 THEN
    SELECT json_agg(CASE WHEN h.n <> ALL (numbers)
      THEN json_build_array(CASE WHEN lives_until(l) > clock_us() THEN l.holder END, coalesce(l.fence, 0))
      WHEN h.key = ANY (woken) THEN '1'::json ELSE '0'::json END ORDER BY h.n)
    INTO replies FROM unnest(keys) WITH ORDINALITY AS h(key, n) LEFT JOIN lease l ON l.key = h.key;
  END IF;
  RETURN json_build_object('replies', replies, 'hints', to_json(hints));
END $$;

-- keys: with their scope. A reply is 0 (released), 1 (released, and a waiter was woken), or [holder, fence]: not held. Null for
-- the replies: all 0.
CREATE FUNCTION lease_release(in_scope text, keys text[], holders text[], fences bigint[]) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  now bigint;
  hints json[];
BEGIN
  IF cardinality(keys) = 1 THEN
    -- As in `lease_acquire`. A lease without a keepalive lives by its own time.
    now := clock_us();
    UPDATE lease l SET holder = NULL, until = now
    WHERE l.key = keys[1] AND l.holder = holders[1] AND l.fence = fences[1] AND l.keepalive IS NULL AND l.until > now;
    IF FOUND THEN
      IF NOT EXISTS (SELECT FROM line WHERE key = keys[1]) THEN RETURN '{"replies":null,"hints":[]}'; END IF;
      hints := wake(in_scope, keys[1], 1, 0);
      RETURN json_build_object('replies', json_build_array(cardinality(hints)), 'hints', to_json(hints));
    END IF;
  END IF;
  RETURN release_each(in_scope, keys, holders, fences);
END $$;

-- Makes the successor the holder for a window, under a lock of the row, and returns the new fence.
CREATE FUNCTION hand_over(name text, successor text, window_us bigint, floor bigint, quarantine_us bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now bigint := clock_us();
  m marker;
  minted bigint;
BEGIN
  SELECT * INTO m FROM marker;
  UPDATE lease l SET holder = successor, until = now + window_us, keepalive = NULL, revoked = false, kept = now + fence_kept_us(),
    fence = greatest(l.fence + 1, now, hand_over.floor, m.floor + 1),
    offer = CASE WHEN m.since + quarantine_us > now THEN m.era END
  WHERE key = name RETURNING fence INTO minted;
  RETURN minted;
END $$;

-- request: scope, window (ms), quarantine (ms), handovers: [[key, holder, fence, successor]].
-- A reply is the new fence, or [holder, fence]: not held.
CREATE FUNCTION lease_transfer(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  scope text := q->>'scope';
  h record;
  l lease;
  replies json[] := array_fill(NULL::json, ARRAY[json_array_length(q->'handovers')]);
  hints json[] := '{}';
BEGIN
  -- All waits for guarded transactions come before the first lock of a keepalive: see `tell_keepalive`.
  PERFORM FROM lease given JOIN json_array_elements(q->'handovers') AS e
    ON given.key = scope || (e->>0) AND given.holder = e->>1 AND given.fence = (e->>2)::bigint
    ORDER BY given.key FOR UPDATE OF given;
  FOR h IN
    SELECT n::int AS n, e->>0 AS key, e->>1 AS holder, (e->>2)::bigint AS fence, e->>3 AS successor
    FROM json_array_elements(q->'handovers') WITH ORDINALITY AS t(e, n) ORDER BY (scope || (e->>0)) COLLATE "C", n
  LOOP
    -- Waits for transactions of the giver that `guard` has let pass.
    SELECT * INTO l FROM lease WHERE key = scope || h.key AND holder = h.holder AND fence = h.fence FOR UPDATE;
    IF l.key IS NULL OR lives_until(l) <= clock_us() THEN
      SELECT * INTO l FROM lease WHERE key = scope || h.key;
      replies[h.n] := json_build_array(CASE WHEN lives_until(l) > clock_us() THEN l.holder END, coalesce(l.fence, 0));
    ELSE
      replies[h.n] := to_json(hand_over(scope || h.key, h.successor, ((q->>'window')::float8 * 1000)::bigint, h.fence + 1,
        (q->>'quarantine')::bigint * 1000));
      hints := hints || json_build_array(scope || split_part(h.successor, '/', 1), h.key);
    END IF;
  END LOOP;
  RETURN json_build_object('replies', to_json(replies), 'hints', to_json(hints));
END $$;

-- Frees a key against its holder's will, and returns the hints for its next waiter.
CREATE FUNCTION free_lease(scope text, name text) RETURNS json[] LANGUAGE plpgsql AS $$
DECLARE now bigint := clock_us();
BEGIN
  INSERT INTO lease AS l (key, holder, fence, until, revoked, kept)
  VALUES (name, NULL, greatest(now, (SELECT floor + 1 FROM marker)), now, true, now + fence_kept_us())
  ON CONFLICT (key) DO UPDATE SET holder = NULL, until = now, keepalive = NULL, revoked = true, kept = excluded.kept, offer = NULL,
    fence = greatest(l.fence + 1, excluded.fence);
  RETURN wake(scope, name, 1, 0);
END $$;

-- request: scope, key, force, fence. Returns [holder, fence] if not held, else [holder, fence, left ms, hints].
CREATE FUNCTION lease_revoke(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  name text := in_scope || (q->>'key');
  force boolean := q->>'force';
  l lease;
  now bigint;
  minted bigint;
  hints json[] := '{}';
BEGIN
  SELECT * INTO l FROM lease WHERE key = name AND fence = (q->>'fence')::bigint FOR UPDATE;
  l.until := settle(l);
  now := clock_us();
  IF l.key IS NULL OR l.holder IS NULL OR l.until <= now OR (l.holder = '!revoked' AND NOT force) THEN
    SELECT * INTO l FROM lease WHERE key = name;
    RETURN json_build_array(CASE WHEN lives_until(l) > now THEN l.holder END, coalesce(l.fence, 0));
  END IF;
  IF force THEN
    hints := free_lease(in_scope, name);
    SELECT fence INTO minted FROM lease WHERE key = name;
  ELSE
    -- No earlier than its holder stops: until the later of both times.
    UPDATE lease SET holder = '!revoked', until = l.until, keepalive = NULL, offer = NULL, kept = now + fence_kept_us(),
      fence = greatest(l.fence + 1, now, (SELECT floor + 1 FROM marker)) WHERE key = name RETURNING fence INTO minted;
  END IF;
  RETURN json_build_array(l.holder, minted, (l.until - now) / 1000.0, to_json(hints));
END $$;

-- request: scope, keys. A reply is [holder, fence, left ms].
CREATE FUNCTION lease_read(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  now bigint := clock_us();
BEGIN
  RETURN coalesce((
    SELECT json_agg(json_build_array(CASE WHEN greatest(l.until, a.until) > now THEN l.holder END, coalesce(l.fence, 0),
      (greatest(l.until, a.until) - now) / 1000.0) ORDER BY n)
    FROM json_array_elements_text(q->'keys') WITH ORDINALITY AS k(key, n) LEFT JOIN lease l ON l.key = in_scope || k.key
    LEFT JOIN keepalive a ON a.id = l.keepalive), '[]');
END $$;

-- request: scope, prefix, cursor, most. Returns [cursor or null, [[key, holder, fence, left ms]]].
CREATE FUNCTION lease_list(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  scope text := q->>'scope';
  most int := q->>'most';
  now bigint := clock_us();
  start text := scope || (q->>'prefix');
  final text;
  size int;
  leases json;
BEGIN
  WITH page AS (
    SELECT key, holder, fence, greatest(until, (SELECT a.until FROM keepalive a WHERE a.id = lease.keepalive)) AS until
    FROM lease WHERE key >= start AND key > coalesce(scope || (q->>'cursor'), '') AND starts_with(key, start)
    ORDER BY key LIMIT most
  )
  SELECT max(key), count(*), coalesce(json_agg(json_build_array(substr(key, length(scope) + 1), holder, fence, (until - now) / 1000.0)
    ORDER BY key) FILTER (WHERE holder <> '!revoked' AND until > now), '[]') INTO final, size, leases FROM page;
  RETURN json_build_array(CASE WHEN size = most THEN substr(final, length(scope) + 1) END, leases);
END $$;

-- request: scope, keys, leaving, most, apart. Returns [how many per key, hints].
CREATE FUNCTION lease_wake_next(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  k record;
  counts int[] := array_fill(0, ARRAY[json_array_length(q->'keys')]);
  hints json[] := '{}';
  added json[];
BEGIN
  FOR k IN SELECT n::int AS n, in_scope || key AS key FROM json_array_elements_text(q->'keys') WITH ORDINALITY AS t(key, n)
    ORDER BY (in_scope || key) COLLATE "C", n
  LOOP
    DELETE FROM line WHERE key = k.key AND inbox = in_scope || (q->>'leaving');
    CONTINUE WHEN EXISTS (SELECT FROM lease l WHERE key = k.key AND holder IS NOT NULL AND lives_until(l) > clock_us());
    added := wake(in_scope, k.key, (q->>'most')::int, (q->>'apart')::int);
    counts[k.n] := cardinality(added);
    hints := hints || added;
  END LOOP;
  RETURN json_build_array(to_json(counts), to_json(hints));
END $$;

-- Lets a transaction pass if the tenure of this fence is current, and keeps it current until that
-- transaction ends: a takeover changes `fence`, and waits. A renewal does not.
-- Under REPEATABLE READ, a snapshot from before the takeover fails here with 40001.
CREATE FUNCTION hold_fence(name text, presented bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE l lease;
BEGIN
  PERFORM FROM lease WHERE key = name AND fence = presented AND holder IS NOT NULL AND holder <> '!revoked' FOR KEY SHARE;
  IF FOUND THEN RETURN; END IF;
  SELECT * INTO l FROM lease WHERE key = name;
  RAISE EXCEPTION USING ERRCODE = 'HF001',
    MESSAGE = concat_ws(' ', 'FENCE_STALE', coalesce(l.fence, 0), CASE WHEN lives_until(l) > clock_us() THEN l.holder END),
    DETAIL = format('The transaction is guarded by lease %L with fence %s.', name, presented),
    HINT = 'The lease is over: another holder may have it. Stop, and acquire it again.';
END $$;

-- Guards the user's own transaction, and presents the lease to tables that are fenced: `fence_write`.
CREATE FUNCTION guard(name text, presented bigint) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  setting text := coalesce(current_setting('holdfast.lease', true), '');
  own text := name || ':' || presented;
BEGIN
  PERFORM hold_fence(name, presented);
  IF own = ANY (string_to_array(setting, E'\n')) THEN RETURN; END IF;
  PERFORM set_config('holdfast.lease', concat_ws(E'\n', nullif(setting, ''), own), true);
END $$;
