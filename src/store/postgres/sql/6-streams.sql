-- Streams and their lanes. A verb locks the row of its stream first, or the rows of all its streams
-- in the order of their numbers, then workflows in the order of theirs, then leases. So the verbs of
-- one stream follow each other, and none can deadlock with another.

CREATE TABLE IF NOT EXISTS stream (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  turn bigint NOT NULL DEFAULT 0,
  UNIQUE (scope, name)
) WITH (fillfactor = 50);
-- The last fence of a delivery, of all streams. Its row is the last that a verb locks. (A sequence
-- would not do: it cannot follow the clock, which keeps fences rising over a loss of data.)
CREATE TABLE IF NOT EXISTS delivery (id int PRIMARY KEY CHECK (id = 1), fence bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO delivery VALUES (1, 0) ON CONFLICT DO NOTHING;
-- One row per lane with entries, about its first entry. `due` is null while that entry waits.
-- Otherwise it is when the claim expires (`fence` > 0), or when a retry is due (`fence` 0).
CREATE TABLE IF NOT EXISTS lane (
  stream bigint NOT NULL,
  lane text COLLATE "C" NOT NULL,
  entry bigint NOT NULL,
  priority int NOT NULL,
  turn bigint NOT NULL,
  due bigint,
  fence bigint NOT NULL,
  consumer text,
  tries int NOT NULL,
  PRIMARY KEY (stream, lane)
);
CREATE INDEX IF NOT EXISTS lane_waiting ON lane (stream, priority DESC, turn) WHERE due IS NULL;
CREATE INDEX IF NOT EXISTS lane_due ON lane (stream, due, lane) WHERE due IS NOT NULL;
CREATE TABLE IF NOT EXISTS entry (
  stream bigint NOT NULL,
  lane text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  priority int NOT NULL,
  json text NOT NULL,
  PRIMARY KEY (stream, lane, number)
);
CREATE TABLE IF NOT EXISTS dead (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  stream bigint NOT NULL,
  lane text COLLATE "C" NOT NULL,
  json text NOT NULL,
  tries int NOT NULL,
  -- As JSON: PostgreSQL stores no NUL.
  reason text NOT NULL,
  at float8 NOT NULL
);
CREATE INDEX IF NOT EXISTS dead_of_stream ON dead (stream, number);

CREATE FUNCTION wall_ms() RETURNS float8 LANGUAGE sql VOLATILE AS $$ SELECT clock_us() / 1000.0::float8 $$;

-- Null for a stream that never had an entry.
CREATE FUNCTION lock_stream(in_scope text, named text) RETURNS bigint LANGUAGE plpgsql AS
$$ BEGIN RETURN (SELECT number FROM stream WHERE scope = in_scope AND name = named FOR UPDATE); END $$;

CREATE FUNCTION ensure_streams(in_scope text, names text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO stream (scope, name) SELECT in_scope, n FROM (SELECT DISTINCT unnest(names) COLLATE "C" AS n) u
  WHERE NOT EXISTS (SELECT FROM stream WHERE scope = in_scope AND name = n) ORDER BY n
  ON CONFLICT DO NOTHING;
  PERFORM FROM stream WHERE scope = in_scope AND name = ANY (names) ORDER BY number FOR UPDATE;
END $$;

CREATE FUNCTION stream_number(in_scope text, named text) RETURNS bigint LANGUAGE plpgsql STABLE AS
$$ BEGIN RETURN (SELECT number FROM stream WHERE scope = in_scope AND name = named); END $$;

CREATE FUNCTION give_turn(s bigint, l text, first bigint, p int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE t bigint;
BEGIN
  UPDATE stream SET turn = turn + 1 WHERE number = s RETURNING turn INTO t;
  INSERT INTO lane VALUES (s, l, first, p, t, NULL, 0, NULL, 0)
  ON CONFLICT (stream, lane) DO UPDATE SET entry = excluded.entry, priority = excluded.priority, turn = excluded.turn,
    due = NULL, fence = 0, consumer = NULL, tries = 0;
END $$;

-- Adds an entry. The first entry of a lane also puts the lane in the queue.
CREATE FUNCTION add_entry(s bigint, l text, p int, j text, n bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE place bigint := n;
BEGIN
  IF place IS NULL THEN
    SELECT coalesce(max(number), 0) + 1 INTO place FROM entry WHERE stream = s AND lane = l;
  END IF;
  INSERT INTO entry VALUES (s, l, place, p, j);
  IF NOT EXISTS (SELECT FROM lane WHERE stream = s AND lane = l) THEN PERFORM give_turn(s, l, place, p); END IF;
END $$;

-- Removes the lane's first entry, and queues the lane for the next one.
CREATE FUNCTION advance_lane(x lane) RETURNS void LANGUAGE plpgsql AS $$
DECLARE e record;
BEGIN
  DELETE FROM entry WHERE stream = x.stream AND lane = x.lane AND number = x.entry;
  SELECT number, priority INTO e FROM entry WHERE stream = x.stream AND lane = x.lane ORDER BY number LIMIT 1;
  IF FOUND THEN
    PERFORM give_turn(x.stream, x.lane, e.number, e.priority);
  ELSE
    DELETE FROM lane WHERE stream = x.stream AND lane = x.lane;
  END IF;
END $$;

-- Removes all entries of a lane, or all but the first.
CREATE FUNCTION clear_lane(x lane, spares boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM entry WHERE stream = x.stream AND lane = x.lane AND NOT (spares AND number = x.entry);
  IF NOT spares THEN DELETE FROM lane WHERE stream = x.stream AND lane = x.lane; END IF;
END $$;

-- STABLE, or no condition with it can use an index.
CREATE FUNCTION first_json(x lane) RETURNS text LANGUAGE plpgsql STABLE AS
$$ BEGIN RETURN (SELECT json FROM entry WHERE stream = x.stream AND lane = x.lane AND number = x.entry); END $$;

-- The next lanes: expired claims and due retries, then by priority and waiting time.
CREATE FUNCTION lanes_in_turn(s bigint, most int) RETURNS lane[] LANGUAGE plpgsql AS $$
DECLARE
  due_lanes lane[];
  waiting lane[];
BEGIN
  SELECT coalesce(array_agg(x ORDER BY x.due, x.lane), '{}') INTO due_lanes FROM (
    SELECT * FROM lane WHERE stream = s AND due <= clock_us() AND due IS NOT NULL ORDER BY due, lane LIMIT most) x;
  SELECT coalesce(array_agg(x ORDER BY x.priority DESC, x.turn), '{}') INTO waiting FROM (
    SELECT * FROM lane WHERE stream = s AND due IS NULL ORDER BY priority DESC, turn
    LIMIT most - cardinality(due_lanes)) x;
  RETURN due_lanes || waiting;
END $$;

-- Whether a stream may have a lane to give out. Read without its lock, before it is locked: to find nothing costs no write and
-- no flush. An entry that is being added has its hint sent after its commit.
CREATE FUNCTION may_have_lanes(in_scope text, named text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE s bigint := stream_number(in_scope, named);
BEGIN
  RETURN EXISTS (SELECT FROM lane WHERE stream = s AND due IS NULL) OR EXISTS (SELECT FROM lane WHERE stream = s AND due <= clock_us());
END $$;

-- Claims the lane's first entry for a consumer, and returns the fence.
CREATE FUNCTION give_out(x lane, consumer_name text, claim_us bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE minted bigint;
BEGIN
  UPDATE delivery SET fence = greatest(fence + 1, clock_us()) WHERE id = 1 RETURNING fence INTO minted;
  UPDATE lane SET due = clock_us() + claim_us, fence = minted, consumer = consumer_name, tries = tries + 1
  WHERE stream = x.stream AND lane = x.lane;
  RETURN minted;
END $$;

CREATE FUNCTION put_aside(x lane, j text, why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO dead (stream, lane, json, tries, reason, at) VALUES (x.stream, x.lane, j, x.tries, why, wall_ms());
END $$;

-- request: scope, stream, entries: [[lane, priority, json]]. Returns hints.
CREATE FUNCTION stream_append(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  s bigint;
  e record;
BEGIN
  PERFORM ensure_streams(in_scope, ARRAY[q->>'stream']);
  s := stream_number(in_scope, q->>'stream');
  FOR e IN SELECT x->>0 AS lane, (x->>1)::int AS priority, x->>2 AS json FROM json_array_elements(q->'entries') WITH ORDINALITY AS t(x, n)
    ORDER BY n
  LOOP
    PERFORM add_entry(s, e.lane, e.priority, e.json, NULL);
  END LOOP;
  RETURN json_build_array(json_build_array(in_scope || 'stream:' || (q->>'stream'), q->>'stream'));
END $$;

-- request: scope, stream, consumer, most, claim (ms). Returns [[lane, fence, json, tries]].
CREATE FUNCTION stream_consume(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  s bigint;
  x lane;
  given json[] := '{}';
BEGIN
  IF NOT may_have_lanes(q->>'scope', q->>'stream') THEN RETURN '[]'; END IF;
  s := lock_stream(q->>'scope', q->>'stream');
  FOREACH x IN ARRAY lanes_in_turn(s, (q->>'most')::int) LOOP
    given := given || json_build_array(x.lane, give_out(x, q->>'consumer', ((q->>'claim')::float8 * 1000)::bigint),
      first_json(x), x.tries + 1);
  END LOOP;
  RETURN to_json(given);
END $$;

-- What a consumer says of entries that it has. request: scope, stream, verb (extend, ack, retry,
-- bury), held: [[lane, fence, ms or reason]]. A reply is whether the claim was current.
CREATE FUNCTION stream_held(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  s bigint := lock_stream(q->>'scope', q->>'stream');
  h record;
  x lane;
  replies boolean[] := array_fill(false, ARRAY[json_array_length(q->'held')]);
BEGIN
  FOR h IN SELECT n::int AS n, e->>0 AS lane, (e->>1)::bigint AS fence, e->>2 AS more
    FROM json_array_elements(q->'held') WITH ORDINALITY AS t(e, n) ORDER BY n
  LOOP
    SELECT * INTO x FROM lane WHERE stream = s AND lane = h.lane AND fence = h.fence AND fence > 0;
    CONTINUE WHEN NOT FOUND;
    replies[h.n] := true;
    CASE q->>'verb'
      WHEN 'extend' THEN UPDATE lane SET due = clock_us() + (h.more::float8 * 1000)::bigint WHERE stream = s AND lane = h.lane;
      WHEN 'retry' THEN UPDATE lane SET due = clock_us() + (h.more::float8 * 1000)::bigint, fence = 0, consumer = NULL
        WHERE stream = s AND lane = h.lane;
      WHEN 'ack' THEN PERFORM advance_lane(x);
      WHEN 'bury' THEN
        PERFORM put_aside(x, first_json(x), h.more);
        PERFORM advance_lane(x);
    END CASE;
  END LOOP;
  RETURN to_json(replies);
END $$;

-- request: scope, stream, after, most. Returns [[number, lane, json, tries, reason, at]].
CREATE FUNCTION stream_dead(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  RETURN coalesce((
    SELECT json_agg(json_build_array(number::text, lane, json, tries, reason, at) ORDER BY number) FROM (
      SELECT * FROM dead WHERE stream = stream_number(q->>'scope', q->>'stream') AND number > (q->>'after')::bigint
      ORDER BY number LIMIT (q->>'most')::int + 1) page), '[]');
END $$;

-- request: scope, stream, ids. Returns how many there were.
CREATE FUNCTION stream_drop(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  dropped int;
BEGIN
  DELETE FROM dead WHERE stream = lock_stream(q->>'scope', q->>'stream')
    AND number IN (SELECT i::bigint FROM json_array_elements_text(q->'ids') AS i);
  GET DIAGNOSTICS dropped = ROW_COUNT;
  RETURN dropped;
END $$;

CREATE FUNCTION stream_names(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  -- A step that was refused may have made a stream without entries.
  RETURN coalesce((SELECT json_agg(name ORDER BY name) FROM stream WHERE scope = q->>'scope' AND turn > 0), '[]');
END $$;
