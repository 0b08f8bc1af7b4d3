-- The server: its clock, its era, and what an examination needs.
-- A function that reads or writes a table is in PL/pgSQL, which plans a statement once for each session. One in plain SQL is
-- planned again in each call (0.1 ms), unless it is a single expression, which becomes a part of its caller.

-- Reads the clock at the moment of the call, never at the start of the transaction: a verb may have
-- waited for a lock since then. Tests replace this function to move the clock.
CREATE FUNCTION clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The timeline on which the server writes now. A standby that is promoted begins another one.
CREATE FUNCTION timeline() RETURNS text LANGUAGE sql VOLATILE AS
$$ SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) $$;

-- A position in the WAL that is on the disk when the caller is answered, as a number. On a timeline
-- it never goes back, unless an older copy was restored. A transaction that writes is flushed with
-- all that is before it. One that only reads is not: a crash may lose what others have written.
CREATE FUNCTION wal_position() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (CASE WHEN pg_current_xact_id_if_assigned() IS NULL THEN pg_current_wal_flush_lsn()
  ELSE pg_current_wal_insert_lsn() END - '0/0'::pg_lsn)::bigint $$;

CREATE FUNCTION is_synchronous() RETURNS boolean LANGUAGE sql VOLATILE AS
$$ SELECT current_setting('synchronous_standby_names') <> '' $$;

CREATE FUNCTION begin_era() RETURNS marker LANGUAGE plpgsql AS $$
DECLARE m marker;
BEGIN
  UPDATE marker SET era = gen_random_uuid()::text, since = clock_us(), timeline = timeline(),
    synchronous = is_synchronous() RETURNING * INTO m;
  RETURN m;
END $$;

-- The marker, after the server was compared with it. `standbys`: 'synchronous' if the operator has
-- said that only synchronous standbys are ever promoted. `began` says why a new era began here.
CREATE FUNCTION check_era(standbys text, OUT m marker, OUT began text) LANGUAGE plpgsql AS $$
BEGIN
  SELECT * INTO m FROM marker;
  IF m.timeline = timeline() AND m.synchronous = is_synchronous() THEN RETURN; END IF;
  SELECT * INTO m FROM marker FOR UPDATE;
  IF m.timeline <> timeline() THEN
    -- Every grant before the promotion waited for a standby of the kind that was promoted.
    IF standbys = 'synchronous' AND m.synchronous THEN
      UPDATE marker SET timeline = timeline(), synchronous = is_synchronous() RETURNING * INTO m;
    ELSE
      began := 'a standby was promoted, or a backup restored: timeline ' || m.timeline || ' became ' || timeline();
      m := begin_era();
    END IF;
  ELSE
    UPDATE marker SET synchronous = is_synchronous() RETURNING * INTO m;
  END IF;
END $$;

-- Examines the server for a new connection. `request`: standbys, origin (of the store that the
-- process knows; null at first), position (the highest in the WAL that the process has seen in this
-- era, on this timeline; 0 at first), left (eras that the process has left), bounds (null for an
-- observer).
CREATE FUNCTION server_examine(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  checked record;
  m marker;
  began text;
  server_id text := (SELECT system_identifier::text FROM pg_control_system());
BEGIN
  SELECT * INTO checked FROM check_era(q->>'standbys');
  m := checked.m;
  began := checked.began;
  IF began IS NULL THEN
    FOR attempt IN 1..2 LOOP
      began := CASE WHEN m.system <> server_id THEN 'its data is a copy from another server'
        WHEN q->>'origin' <> m.origin THEN 'its tables are new: dropped, or replaced'
        WHEN q->>'era' = m.era AND q->>'timeline' = m.timeline AND (q->>'position')::bigint > wal_position()
          OR m.era IN (SELECT json_array_elements_text(q->'left')) THEN 'an earlier state of its data is back' END;
      EXIT WHEN began IS NULL;
      -- Another connection may have found the same, and begun the era already.
      SELECT * INTO m FROM marker FOR UPDATE;
    END LOOP;
    IF began IS NOT NULL THEN
      m := begin_era();
      UPDATE marker SET system = server_id, origin = coalesce(q->>'origin', origin) RETURNING * INTO m;
    END IF;
  END IF;
  IF q->>'bounds' IS NOT NULL AND (m.bounds IS NULL OR (began IS NOT NULL AND q->>'origin' IS NOT NULL)) THEN
    UPDATE marker SET bounds = q->>'bounds' RETURNING * INTO m;
  END IF;
  RETURN json_build_object('era', m.era, 'since', clock_us() - m.since, 'began', began, 'origin', m.origin,
    'position', wal_position(), 'timeline', m.timeline, 'bounds', m.bounds, 'format', m.format);
END $$;

CREATE FUNCTION server_bounds(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE m marker;
BEGIN
  IF request = '' THEN
    SELECT * INTO m FROM marker;
  ELSE
    UPDATE marker SET bounds = request;
    m := begin_era();
  END IF;
  RETURN json_build_object('bounds', m.bounds, 'era', m.era, 'since', clock_us() - m.since);
END $$;

-- What an examination tells a person.
CREATE FUNCTION server_facts(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN json_build_object(
    'format', (SELECT format FROM marker),
    'timeline', timeline(),
    'synchronous', is_synchronous(),
    'clock', clock_us(),
    'leases', (SELECT reltuples FROM pg_class WHERE oid = 'lease'::regclass));
END $$;

-- Removes what has expired long ago, one chunk of leases after `request` at a time. Returns the key
-- to continue after; '' when the table is done.
CREATE FUNCTION server_sweep(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  now bigint := clock_us();
  last text;
  highest bigint;
BEGIN
  SELECT max(key) INTO last FROM (SELECT key FROM lease WHERE key > request ORDER BY key LIMIT 5000) chunk;
  WITH old AS (
    SELECT key FROM lease WHERE key > request AND key <= last AND kept < now AND until < now
      AND NOT EXISTS (SELECT FROM keepalive a WHERE a.id = lease.keepalive AND a.until > now)
    ORDER BY key FOR UPDATE SKIP LOCKED
  ), gone AS (DELETE FROM lease USING old WHERE lease.key = old.key RETURNING fence)
  SELECT max(fence) INTO highest FROM gone;
  -- A clock that is set back later must not mint these fences again.
  IF highest IS NOT NULL THEN UPDATE marker SET floor = highest WHERE floor < highest; END IF;
  IF request = '' THEN
    DELETE FROM keepalive WHERE id IN (SELECT id FROM keepalive WHERE until < now LIMIT 5000 FOR UPDATE SKIP LOCKED);
    DELETE FROM line WHERE (key, inbox) IN (SELECT key, inbox FROM line WHERE until < now LIMIT 5000 FOR UPDATE SKIP LOCKED);
    DELETE FROM member WHERE (scope, id) IN (SELECT scope, id FROM member WHERE until < now LIMIT 5000 FOR UPDATE SKIP LOCKED);
    DELETE FROM process WHERE owner IN (SELECT owner FROM process WHERE until < now - 60000000 LIMIT 5000 FOR UPDATE SKIP LOCKED);
    DELETE FROM listener l WHERE NOT EXISTS (SELECT FROM process p WHERE p.owner = l.owner);
    DELETE FROM message WHERE at < now - 10000000;
  END IF;
  RETURN coalesce(last, '');
END $$;
