-- Records. Each collection has a counter whose row a writer locks first: so the order of versions is
-- the order of commits, and a reader of changes leaves none out. (An identity column would not do:
-- its numbers are drawn before the commit, and become visible out of order.)

CREATE TABLE IF NOT EXISTS collection (
  name text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  -- Removals up to this version may have been dropped.
  forgotten bigint NOT NULL
) WITH (fillfactor = 50);
-- `json` is null for a removed record, which keeps its row for a day, for its fence and for `changes`.
CREATE TABLE IF NOT EXISTS record (
  collection text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  json text,
  revision bigint NOT NULL,
  fence bigint NOT NULL,
  version bigint NOT NULL,
  until bigint,
  PRIMARY KEY (collection, id)
);
CREATE INDEX IF NOT EXISTS record_changes ON record (collection, version);
CREATE INDEX IF NOT EXISTS record_removals ON record (until) WHERE json IS NULL;

-- request: scope, collection, ids. A reply is null or [json, revision, fence].
CREATE FUNCTION record_get(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  named text := q->>'scope' || (q->>'collection');
BEGIN
  RETURN coalesce((
    SELECT json_agg(CASE WHEN r.json IS NOT NULL THEN json_build_array(r.json, r.revision, r.fence) END ORDER BY n)
    FROM json_array_elements_text(q->'ids') WITH ORDINALITY AS i(id, n)
    LEFT JOIN record r ON r.collection = named AND r.id = i.id), '[]');
END $$;

-- Writes and removes. request: scope, collection, writes: [{id, json (null: remove), fence, revision}].
-- A reply is [revision], ['absent'], ['stale', seen] or ['conflict', revision].
CREATE FUNCTION record_write(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  named text := q->>'scope' || (q->>'collection');
  w record;
  r record;
  c collection;
  now bigint;
  current bigint;
  replies json[] := array_fill(NULL::json, ARRAY[json_array_length(q->'writes')]);
BEGIN
  INSERT INTO collection VALUES (named, 0, 0) ON CONFLICT DO NOTHING;
  SELECT * INTO c FROM collection WHERE name = named FOR UPDATE;
  now := clock_us();
  FOR w IN
    SELECT n::int AS n, e->>'id' AS id, e->>'json' AS json, (e->>'fence')::bigint AS fence, (e->>'revision')::bigint AS expected
    FROM json_array_elements(q->'writes') WITH ORDINALITY AS t(e, n) ORDER BY n
  LOOP
    SELECT json, revision, fence INTO r FROM record WHERE collection = named AND id = w.id;
    current := CASE WHEN r.json IS NULL THEN 0 ELSE r.revision END;
    IF w.fence < coalesce(r.fence, 0) THEN
      replies[w.n] := json_build_array('stale', r.fence);
    ELSIF w.expected <> current THEN
      replies[w.n] := json_build_array('conflict', current);
    ELSIF w.json IS NULL AND r.json IS NULL THEN
      replies[w.n] := json_build_array('absent');
    ELSE
      c.version := greatest(c.version + 1, now);
      INSERT INTO record VALUES (named, w.id, w.json, coalesce(r.revision, 0) + 1, coalesce(w.fence, r.fence, 0), c.version,
        CASE WHEN w.json IS NULL THEN now + fence_kept_us() END)
      ON CONFLICT (collection, id) DO UPDATE SET json = excluded.json, revision = excluded.revision,
        fence = excluded.fence, version = excluded.version, until = excluded.until;
      replies[w.n] := json_build_array(coalesce(r.revision, 0) + 1);
    END IF;
  END LOOP;
  UPDATE collection SET version = c.version WHERE name = named AND version < c.version;
  RETURN to_json(replies);
END $$;

-- request: scope, collection, since, began, most. Returns {newest, forgotten, rows: [[id, version, isRemoved]]},
-- one row more than `most` if there is more.
CREATE FUNCTION record_changes(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  named text := q->>'scope' || (q->>'collection');
  since bigint := q->>'since';
  c collection;
  known bigint;
BEGIN
  SELECT * INTO c FROM collection WHERE name = named;
  known := greatest(since, CASE WHEN since = 0 THEN coalesce(c.version, 0) ELSE coalesce((q->>'began')::bigint, 0) END);
  RETURN json_build_object('newest', coalesce(c.version, 0), 'forgotten', coalesce(c.forgotten, 0), 'rows', coalesce((
    SELECT json_agg(json_build_array(id, version, json IS NULL) ORDER BY version) FROM (
      SELECT id, version, json FROM record WHERE collection = named AND version > since
        AND (json IS NOT NULL OR version > known) ORDER BY version LIMIT (q->>'most')::int + 1
    ) page), '[]'));
END $$;

-- Removes removals that are a day old. A reader that is behind one has to begin again.
CREATE FUNCTION record_sweep(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  c text;
  highest bigint;
BEGIN
  FOR c IN SELECT DISTINCT collection FROM record WHERE json IS NULL AND until < clock_us() ORDER BY 1 LIMIT 100 LOOP
    PERFORM FROM collection WHERE name = c FOR UPDATE;
    WITH gone AS (
      DELETE FROM record WHERE (collection, id) IN (
        SELECT collection, id FROM record WHERE collection = c AND json IS NULL AND until < clock_us() LIMIT 5000)
      RETURNING version
    ) SELECT max(version) INTO highest FROM gone;
    UPDATE collection SET forgotten = greatest(forgotten, highest) WHERE name = c AND highest IS NOT NULL;
  END LOOP;
  RETURN 'null';
END $$;

-- The log. Numbers have no gaps, so a reader notices missing entries. Writers lock the head.
CREATE TABLE IF NOT EXISTS log_head (scope text COLLATE "C" PRIMARY KEY, last bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS log (
  scope text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  json text NOT NULL,
  PRIMARY KEY (scope, number)
);

-- request: scope, entries, kept, most (how many old entries to remove).
CREATE FUNCTION log_append(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  s text := q->>'scope';
  now bigint;
  first bigint;
BEGIN
  -- Made from the time: a position in a log that was lost is no position in this one.
  INSERT INTO log_head VALUES (s, clock_us()) ON CONFLICT DO NOTHING;
  UPDATE log_head SET last = last + json_array_length(q->'entries') WHERE scope = s
  RETURNING last - json_array_length(q->'entries') INTO first;
  now := clock_us();
  INSERT INTO log SELECT s, first + n, now, e FROM json_array_elements_text(q->'entries') WITH ORDINALITY AS t(e, n);
  DELETE FROM log WHERE scope = s AND number IN (
    SELECT number FROM log WHERE scope = s AND number <= first + json_array_length(q->'entries') - (q->>'kept')::bigint
    ORDER BY number LIMIT (q->>'most')::int);
  RETURN 'null';
END $$;

-- request: scope, after (null: from the oldest), most. Returns [last or null, [[number, json]]].
CREATE FUNCTION log_read(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
BEGIN
  RETURN json_build_array((SELECT last::text FROM log_head WHERE scope = in_scope), coalesce((
    SELECT json_agg(json_build_array(number::text, json) ORDER BY number) FROM (
      SELECT number, json FROM log WHERE scope = in_scope AND number > coalesce((q->>'after')::bigint, 0)
      ORDER BY number LIMIT (q->>'most')::int + 1
    ) page), '[]'));
END $$;

-- request: scope, before (null: from the newest), most. Returns [[number, json]], the newest first.
CREATE FUNCTION log_recall(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  RETURN coalesce((
    SELECT json_agg(json_build_array(number::text, json) ORDER BY number DESC) FROM (
      SELECT number, json FROM log WHERE scope = q->>'scope' AND number < coalesce((q->>'before')::bigint, 9007199254740991)
      ORDER BY number DESC LIMIT (q->>'most')::int + 1
    ) page), '[]');
END $$;

-- request: scope, kept (ms), most. Returns how many were dropped.
CREATE FUNCTION log_trim(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  dropped int;
BEGIN
  PERFORM FROM log_head WHERE scope = in_scope FOR UPDATE;
  DELETE FROM log WHERE scope = in_scope AND number IN (
    SELECT number FROM log WHERE scope = in_scope ORDER BY number LIMIT (q->>'most')::int)
    AND at <= clock_us() - ((q->>'kept')::float8 * 1000)::bigint;
  GET DIAGNOSTICS dropped = ROW_COUNT;
  RETURN dropped;
END $$;
