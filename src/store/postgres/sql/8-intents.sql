-- Sessions that intents start. A verb locks the streams of starts of its kinds first, then sessions.

CREATE TABLE IF NOT EXISTS session (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  -- As JSON: a label may have any character.
  label text COLLATE "C" NOT NULL,
  state text NOT NULL,
  revision bigint NOT NULL,
  body text NOT NULL,
  status text NOT NULL,
  priority int NOT NULL,
  clients int NOT NULL,
  created float8 NOT NULL,
  changed float8 NOT NULL,
  UNIQUE (scope, id)
);
CREATE INDEX IF NOT EXISTS session_made ON session (scope, number);
CREATE INDEX IF NOT EXISTS session_of_tenant ON session (scope, tenant, number);
CREATE INDEX IF NOT EXISTS session_of_kind ON session (scope, kind, number);
CREATE INDEX IF NOT EXISTS session_of_label ON session (scope, kind, label, number);
CREATE INDEX IF NOT EXISTS session_open ON session (scope, number) WHERE state <> 'ENDED';
CREATE INDEX IF NOT EXISTS session_ended ON session (scope, changed) WHERE state = 'ENDED';
CREATE TABLE IF NOT EXISTS session_key (
  scope text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  session bigint NOT NULL,
  PRIMARY KEY (scope, key)
);
CREATE INDEX IF NOT EXISTS key_of_session ON session_key (session);
CREATE TABLE IF NOT EXISTS session_client (session bigint NOT NULL, client text COLLATE "C" NOT NULL, PRIMARY KEY (session, client));

CREATE FUNCTION session_json(s session) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('id', s.id, 'tenant', s.tenant, 'kind', s.kind, 'label', s.label::json, 'state', s.state,
    'revision', s.revision, 'body', s.body, 'status', s.status, 'clients', s.clients, 'createdAtMs', s.created, 'changedAtMs', s.changed) $$;

CREATE FUNCTION start_stream(kind text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'intent:start:' || kind $$;

CREATE FUNCTION publish_start(s session) RETURNS json LANGUAGE plpgsql AS $$
DECLARE named text := start_stream(s.kind);
BEGIN
  PERFORM add_entry(stream_number(s.scope, named), s.id, s.priority, json_build_object('session', s.id)::text, NULL);
  RETURN json_build_array(s.scope || 'stream:' || named, named);
END $$;

-- Changes state and status, and returns the session and its hints.
CREATE FUNCTION change_session(s session, new_state text, new_status text, OUT changed_session session, OUT hints json[])
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE session SET state = new_state, status = new_status, revision = s.revision + 1, changed = wall_ms(), clients = s.clients
  WHERE number = s.number RETURNING * INTO changed_session;
  IF new_state = 'ENDED' THEN
    DELETE FROM session_key WHERE session = s.number;
    DELETE FROM session_client WHERE session = s.number;
  END IF;
  hints := CASE WHEN s.state <> new_state THEN ARRAY[json_build_array(s.scope || 'intent:sessions', s.id)] ELSE '{}' END;
END $$;

-- request: scope, id, tenant, kind, label (JSON), keys, client, body, status, priority, crowd.
-- Returns {kind: created | replayed | crowded | taken, session, hints}.
CREATE FUNCTION intent_start(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  s session;
  led bigint;
  hints json[] := '{}';
BEGIN
  PERFORM ensure_streams(in_scope, ARRAY[start_stream(q->>'kind')]);
  LOOP
    SELECT k.session INTO led FROM json_array_elements_text(q->'keys') WITH ORDINALITY AS t(key, n)
    JOIN session_key k ON k.scope = in_scope AND k.key = t.key ORDER BY n LIMIT 1;
    EXIT WHEN NOT FOUND;
    SELECT * INTO s FROM session WHERE number = led FOR UPDATE;
    -- It may have ended while this start waited for its row.
    EXIT WHEN s.state <> 'ENDED';
    led := NULL;
  END LOOP;
  IF led IS NULL THEN
    INSERT INTO session (scope, id, tenant, kind, label, state, revision, body, status, priority, clients, created, changed)
    VALUES (in_scope, q->>'id', q->>'tenant', q->>'kind', q->>'label', 'NEW', 1, q->>'body', q->>'status',
      (q->>'priority')::int, 1, wall_ms(), wall_ms())
    ON CONFLICT (scope, id) DO NOTHING RETURNING * INTO s;
    IF s.number IS NULL THEN RETURN '{"kind":"taken","hints":[]}'; END IF;
    UPDATE session SET changed = created WHERE number = s.number RETURNING * INTO s;
    INSERT INTO session_client VALUES (s.number, q->>'client');
    hints := ARRAY[publish_start(s)];
  ELSIF NOT EXISTS (SELECT FROM session_client WHERE session = s.number AND client = q->>'client') THEN
    IF s.clients >= (q->>'crowd')::int THEN
      RETURN json_build_object('kind', 'crowded', 'session', session_json(s), 'hints', to_json(hints));
    END IF;
    INSERT INTO session_client VALUES (s.number, q->>'client');
    UPDATE session SET clients = clients + 1 WHERE number = s.number RETURNING * INTO s;
  END IF;
  INSERT INTO session_key AS k SELECT in_scope, key, s.number FROM (SELECT DISTINCT json_array_elements_text(q->'keys') AS key) t
  ORDER BY key COLLATE "C"
  ON CONFLICT (scope, key) DO UPDATE SET session = excluded.session WHERE k.session <> excluded.session;
  RETURN json_build_object('kind', CASE WHEN led IS NULL THEN 'created' ELSE 'replayed' END, 'session', session_json(s),
    'hints', to_json(hints));
END $$;

-- request: scope, id, tenant, client, force, ending. Returns null or {session, changed, hints}.
CREATE FUNCTION intent_stop(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  s session;
  done record;
  dropped int;
BEGIN
  SELECT * INTO s FROM session WHERE scope = q->>'scope' AND id = q->>'id' FOR UPDATE;
  IF NOT FOUND OR s.tenant <> q->>'tenant' THEN RETURN 'null'; END IF;
  IF s.state IN ('STOPPING', 'ENDED') THEN
    RETURN json_build_object('session', session_json(s), 'changed', false, 'hints', '[]'::json);
  END IF;
  DELETE FROM session_client WHERE session = s.number AND ((q->>'force')::boolean OR client = q->>'client');
  GET DIAGNOSTICS dropped = ROW_COUNT;
  s.clients := CASE WHEN (q->>'force')::boolean THEN 0 ELSE s.clients - dropped END;
  IF s.clients > 0 THEN
    UPDATE session SET clients = s.clients WHERE number = s.number;
    RETURN json_build_object('session', session_json(s), 'changed', false, 'hints', '[]'::json);
  END IF;
  SELECT * INTO done FROM change_session(s, CASE WHEN s.state = 'NEW' THEN 'ENDED' ELSE 'STOPPING' END,
    CASE WHEN s.state = 'NEW' THEN q->>'ending' ELSE s.status END);
  RETURN json_build_object('session', session_json(done.changed_session), 'changed', true, 'hints', to_json(done.hints));
END $$;

-- request: scope, id, revision, state, status. Returns null or {isDone, session, hints}.
CREATE FUNCTION intent_advance(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  s session;
  done record;
BEGIN
  SELECT * INTO s FROM session WHERE scope = q->>'scope' AND id = q->>'id' FOR UPDATE;
  IF NOT FOUND THEN RETURN 'null'; END IF;
  IF s.revision <> (q->>'revision')::bigint OR s.state = 'ENDED' THEN
    RETURN json_build_object('isDone', false, 'session', session_json(s), 'hints', '[]'::json);
  END IF;
  SELECT * INTO done FROM change_session(s, q->>'state', q->>'status');
  RETURN json_build_object('isDone', true, 'session', session_json(done.changed_session), 'hints', to_json(done.hints));
END $$;

-- request: scope, ids. Returns [ids, hints].
CREATE FUNCTION intent_republish(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  s session;
  again text[] := '{}';
  hints json[] := '{}';
BEGIN
  PERFORM ensure_streams(in_scope, ARRAY(
    SELECT DISTINCT start_stream(x.kind) FROM json_array_elements_text(q->'ids') AS t(id)
    JOIN session x ON x.scope = in_scope AND x.id = t.id WHERE x.state = 'NEW'));
  FOR s IN SELECT x.* FROM json_array_elements_text(q->'ids') WITH ORDINALITY AS t(id, n)
    JOIN session x ON x.scope = in_scope AND x.id = t.id WHERE x.state = 'NEW' ORDER BY n
  LOOP
    PERFORM FROM session WHERE number = s.number AND state = 'NEW' FOR UPDATE;
    CONTINUE WHEN NOT FOUND OR s.id = ANY (again) OR EXISTS (
      SELECT FROM lane WHERE stream = stream_number(s.scope, start_stream(s.kind)) AND lane = s.id);
    hints := hints || publish_start(s);
    again := again || s.id;
  END LOOP;
  RETURN json_build_array(to_json(again), to_json(hints));
END $$;

CREATE FUNCTION intent_read(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
BEGIN
  RETURN coalesce((
    SELECT json_agg(CASE WHEN s.number IS NOT NULL THEN session_json(s) END ORDER BY n)
    FROM json_array_elements_text(q->'ids') WITH ORDINALITY AS t(id, n)
    LEFT JOIN session s ON s.scope = in_scope AND s.id = t.id), '[]');
END $$;

-- request: scope, tenant, kind, label (JSON), open, before, most. Returns [[number, session]], the latest first.
CREATE FUNCTION intent_list(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  RETURN coalesce((
    SELECT json_agg(json_build_array(number::text, session_json(page.s)) ORDER BY number DESC) FROM (
      SELECT s.number, s FROM session s WHERE s.scope = q->>'scope' AND (q->>'tenant' IS NULL OR s.tenant = q->>'tenant')
        AND (q->>'kind' IS NULL OR s.kind = q->>'kind') AND (q->>'label' IS NULL OR s.label = q->>'label')
        AND s.number < (q->>'before')::bigint AND (NOT (q->>'open')::boolean OR s.state <> 'ENDED')
      ORDER BY s.number DESC LIMIT (q->>'most')::int + 1) page), '[]');
END $$;

-- request: scope, before (ms), most. Returns how many.
CREATE FUNCTION intent_prune(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  old bigint[];
  gone int := 0;
  s session;
  x lane;
BEGIN
  old := ARRAY(SELECT number FROM session WHERE scope = in_scope AND state = 'ENDED' AND changed < (q->>'before')::float8
    ORDER BY changed LIMIT (q->>'most')::int);
  -- Neither the kind nor the state of an ended session changes while this waits.
  PERFORM FROM stream WHERE scope = in_scope
    AND name IN (SELECT start_stream(kind) FROM session WHERE number = ANY (old)) ORDER BY number FOR UPDATE;
  FOR s IN DELETE FROM session WHERE number = ANY (old) RETURNING * LOOP
    gone := gone + 1;
    SELECT * INTO x FROM lane WHERE stream = stream_number(s.scope, start_stream(s.kind)) AND lane = s.id;
    IF FOUND THEN PERFORM clear_lane(x, false); END IF;
  END LOOP;
  RETURN gone;
END $$;
