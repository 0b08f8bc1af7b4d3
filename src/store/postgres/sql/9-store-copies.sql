-- Copies of whole stores: `copy-store.ts` says what each entry is. Labels and reasons are JSON.

-- request: scope, what ('begin', 'finish', or '' to ask), unfinished (that format). Only the role
-- that owns the schema may comment on it, so this runs with its rights.
CREATE FUNCTION copy_state(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  about text := format('COMMENT ON SCHEMA %I IS ', current_schema());
BEGIN
  IF q->>'what' = 'begin' THEN
    EXECUTE about || quote_literal('Holdfast, version ' || (q->>'unfinished') || ': a copy has begun and has not finished');
    PERFORM erase_copied(q->>'scope');
  ELSIF q->>'what' = 'finish' THEN
    EXECUTE about || quote_literal('Holdfast, version ' || (SELECT format FROM marker) || ': leases, and the work they protect');
  END IF;
  RETURN json_build_object('clock', clock_us(), 'isUnfinished', obj_description(current_schema()::regnamespace, 'pg_namespace')
    LIKE 'Holdfast, version ' || (q->>'unfinished') || ':%');
END $$;

-- Fences stay: a higher fence does no harm.
CREATE FUNCTION erase_copied(in_scope text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  numbers bigint[];
BEGIN
  SELECT array_agg(number) INTO numbers FROM workflow WHERE scope = in_scope;
  DELETE FROM action WHERE workflow = ANY (numbers);
  DELETE FROM taken WHERE workflow = ANY (numbers);
  DELETE FROM result WHERE workflow = ANY (numbers);
  DELETE FROM history WHERE workflow = ANY (numbers);
  PERFORM delete_runs(number) FROM workflow WHERE scope = in_scope;
  DELETE FROM workflow WHERE scope = in_scope;
  SELECT array_agg(number) INTO numbers FROM stream WHERE scope = in_scope;
  DELETE FROM lane WHERE stream = ANY (numbers);
  DELETE FROM entry WHERE stream = ANY (numbers);
  DELETE FROM dead WHERE stream = ANY (numbers);
  DELETE FROM stream WHERE scope = in_scope;
  DELETE FROM session_client WHERE session IN (SELECT number FROM session WHERE scope = in_scope);
  DELETE FROM session_key WHERE scope = in_scope;
  DELETE FROM session WHERE scope = in_scope;
  DELETE FROM record WHERE is_collection(in_scope, collection);
  DELETE FROM collection WHERE is_collection(in_scope, name);
END $$;

-- A collection has no colon: one that has belongs to a store with another prefix.
CREATE FUNCTION is_collection(in_scope text, named text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT starts_with(named, in_scope) AND strpos(substr(named, length(in_scope) + 1), ':') = 0 $$;

-- request: scope, noun, after (what the page before ended with; absent at first), most. Returns the
-- entries of one page, and what it ended with: null at the end.
CREATE FUNCTION copy_export(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  s text := q->>'scope';
  a text := q->'after'->>0;
  b text := q->'after'->>1;
  most int := q->>'most';
  entries json;
  last json;
  rows int;
BEGIN
  IF q->>'noun' = 'fences' THEN
    SELECT json_agg(json_build_object('key', substr(key, length(s) + 1), 'fence', fence) ORDER BY key), to_json(ARRAY[max(key)]), count(*)
    INTO entries, last, rows FROM (SELECT key, fence FROM lease WHERE key > coalesce(a, s) AND key < s || U&'\+10FFFF' ORDER BY key LIMIT most) p;
  ELSIF q->>'noun' = 'records' THEN
    SELECT json_agg(json_build_object('collection', substr(collection, length(s) + 1), 'id', id, 'json', json, 'revision', revision,
      'fence', fence) ORDER BY collection, id), (array_agg(json_build_array(collection, id) ORDER BY collection, id))[count(*)], count(*)
    INTO entries, last, rows FROM (SELECT * FROM record WHERE (collection, id) > (coalesce(a, s), coalesce(b, ''))
      AND collection < s || U&'\+10FFFF' AND json IS NOT NULL ORDER BY collection, id LIMIT most) p;
  ELSIF q->>'noun' = 'workflows' THEN
    SELECT json_agg(copied_workflow(p) ORDER BY id), to_json(ARRAY[max(id)]), count(*)
    INTO entries, last, rows FROM (SELECT * FROM workflow WHERE scope = s AND id > coalesce(a, '') ORDER BY id LIMIT most) p;
  ELSIF q->>'noun' = 'sessions' THEN
    SELECT json_agg(copied_session(p) ORDER BY number), to_json(ARRAY[max(number)]), count(*)
    INTO entries, last, rows FROM (SELECT * FROM session WHERE scope = s AND number > coalesce(a::bigint, 0) ORDER BY number LIMIT most) p;
  ELSIF q->>'noun' = 'streams' THEN
    SELECT json_agg(json_build_object('name', name) ORDER BY name), to_json(ARRAY[max(name)]), count(*)
    INTO entries, last, rows FROM (SELECT name FROM stream WHERE scope = s AND name > coalesce(a, '') AND turn > 0 ORDER BY name LIMIT most) p;
  ELSIF q->>'noun' = 'lanes' THEN
    SELECT json_agg(copied_lane(name, one) ORDER BY n), to_json(ARRAY[max(n)]), count(*)
    INTO entries, last, rows FROM (SELECT t.name, l AS one, coalesce(a::bigint, 0) + row_number() OVER (ORDER BY t.name, l.due IS NOT NULL,
      CASE WHEN l.due IS NULL THEN -l.priority END, CASE WHEN l.due IS NULL THEN l.turn END, l.lane) AS n
      FROM stream t JOIN lane l ON l.stream = t.number WHERE t.scope = s
      ORDER BY n LIMIT most OFFSET coalesce(a::bigint, 0)) p;
  ELSIF q->>'noun' = 'dead' THEN
    SELECT json_agg(json_build_object('stream', name, 'lane', lane, 'json', json, 'tries', tries, 'reason', reason, 'atMs', at)
      ORDER BY name, number), (array_agg(json_build_array(name, number) ORDER BY name, number))[count(*)], count(*)
    INTO entries, last, rows FROM (SELECT t.name, d.* FROM stream t JOIN dead d ON d.stream = t.number
      WHERE t.scope = s AND (t.name, d.number) > (coalesce(a, ''), coalesce(b::bigint, 0)) ORDER BY t.name, d.number LIMIT most) p;
  END IF;
  RETURN json_build_object('entries', coalesce(entries, '[]'), 'after', CASE WHEN rows = most THEN last END,
    'floor', CASE WHEN q->>'noun' = 'fences' AND a IS NULL THEN (SELECT greatest(m.floor, d.fence) FROM marker m, delivery d) END);
END $$;

CREATE FUNCTION copied_workflow(w workflow) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('id', w.id, 'leaseId', w.lease_id, 'phase', w.phase, 'epoch', w.epoch, 'updatedEpoch', w.updated_epoch,
    'state', w.state, 'inbox', w.inbox, 'createdMs', w.created, 'changedMs', w.changed,
    'actions', (SELECT coalesce(json_agg(json_build_object('id', id, 'target', target, 'priority', priority, 'body', body,
      'leaseId', lease_id, 'epoch', epoch, 'isParked', parked)), '[]') FROM action WHERE workflow = w.number),
    'taken', (SELECT coalesce(json_agg(json_build_object('target', target, 'epoch', epoch, 'actionId', action)), '[]')
      FROM taken WHERE workflow = w.number),
    'results', (SELECT coalesce(json_agg(json_build_object('actionId', action, 'target', target, 'epoch', epoch, 'outcome', outcome,
      'json', json, 'atMs', at, 'isUnread', unread, 'isKnown', known) ORDER BY position), '[]')
      FROM result WHERE workflow = w.number AND (unread OR known)),
    'history', (SELECT coalesce(json_agg(json_build_object('atMs', at, 'epoch', epoch, 'leaseId', lease_id, 'what', what)
      ORDER BY position), '[]') FROM history WHERE workflow = w.number),
    'run', (SELECT json_build_object('function', function, 'phase', phase, 'dueUs', due, 'tries', tries, 'waits', waits,
      'value', value, 'input', input) FROM run WHERE workflow = w.number AND function IS NOT NULL),
    'steps', (SELECT coalesce(json_agg(json_build_object('name', name, 'kind', kind, 'isDone', done, 'json', json,
      'atUs', at * 1000) ORDER BY at, number), '[]') FROM run_step WHERE workflow = w.number),
    'signals', (SELECT coalesce(json_agg(json_build_object('id', id, 'name', name, 'json', json, 'atUs', at * 1000,
      'isReceived', received) ORDER BY number), '[]') FROM run_signal WHERE workflow = w.number)) $$;

CREATE FUNCTION copied_session(s session) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('id', s.id, 'tenant', s.tenant, 'kind', s.kind, 'label', s.label, 'state', s.state,
    'revision', s.revision, 'body', s.body, 'status', s.status, 'priority', s.priority, 'clientCount', s.clients,
    'createdMs', floor(s.created), 'changedMs', floor(s.changed),
    'keys', (SELECT coalesce(json_agg(key ORDER BY key), '[]') FROM session_key WHERE session = s.number),
    'clients', (SELECT coalesce(json_agg(client ORDER BY client), '[]') FROM session_client WHERE session = s.number)) $$;

CREATE FUNCTION copied_lane(named text, p lane) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('stream', named, 'lane', p.lane, 'tries', p.tries, 'dueUs', p.due, 'isClaimed', p.fence > 0,
    'entries', (SELECT coalesce(json_agg(json_build_object('priority', e.priority, 'json', e.json) ORDER BY e.number), '[]')
      FROM entry e WHERE e.stream = p.stream AND e.lane = p.lane)) $$;

-- request: scope, noun, entries.
CREATE FUNCTION copy_import(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  s text := q->>'scope';
  now bigint := clock_us();
  e json;
BEGIN
  IF q->>'noun' = 'fences' THEN
    -- Fences without a record are above this one, too.
    UPDATE marker SET floor = greatest(floor, (SELECT max((f->>'fence')::bigint) FROM json_array_elements(q->'entries') f));
  ELSIF q->>'noun' = 'records' THEN
    INSERT INTO collection SELECT DISTINCT s || (r->>'collection'), now, 0 FROM json_array_elements(q->'entries') r
    ON CONFLICT DO NOTHING;
    UPDATE collection SET version = greatest(version, now) + json_array_length(q->'entries')
    WHERE name IN (SELECT s || (r->>'collection') FROM json_array_elements(q->'entries') r);
    INSERT INTO record SELECT c.name, r->>'id', r->>'json', (r->>'revision')::bigint, (r->>'fence')::bigint,
      c.version - json_array_length(q->'entries') + n, NULL
    FROM json_array_elements(q->'entries') WITH ORDINALITY AS t(r, n) JOIN collection c ON c.name = s || (r->>'collection');
    RETURN 'null';
  END IF;
  FOR e IN SELECT * FROM json_array_elements(q->'entries') LOOP
    CASE q->>'noun'
      WHEN 'fences' THEN
        IF e->>'key' IS NULL THEN
          UPDATE delivery SET fence = greatest(fence, (e->>'fence')::bigint);
        ELSE
          INSERT INTO lease AS l (key, holder, fence, until, kept)
          VALUES (s || (e->>'key'), NULL, (e->>'fence')::bigint, now, now + fence_kept_us())
          ON CONFLICT (key) DO UPDATE SET fence = greatest(l.fence, excluded.fence), kept = greatest(l.kept, excluded.kept);
        END IF;
      WHEN 'workflows' THEN PERFORM import_workflow(s, e);
      WHEN 'sessions' THEN PERFORM import_session(s, e);
      WHEN 'streams' THEN
        PERFORM ensure_streams(s, ARRAY[e->>'name']);
        -- A stream without a turn counts as never used.
        UPDATE stream SET turn = 1 WHERE scope = s AND name = e->>'name';
      WHEN 'lanes' THEN PERFORM import_lane(s, e);
      WHEN 'dead' THEN
        PERFORM ensure_streams(s, ARRAY[e->>'stream']);
        INSERT INTO dead (stream, lane, json, tries, reason, at) VALUES (stream_number(s, e->>'stream'), e->>'lane', e->>'json',
          (e->>'tries')::int, e->>'reason', (e->>'atMs')::float8);
    END CASE;
  END LOOP;
  RETURN 'null';
END $$;

CREATE FUNCTION import_workflow(s text, e json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  -- As for a new workflow: positions of the old store fit no result here.
  origin bigint := clock_us();
  w bigint;
BEGIN
  INSERT INTO workflow (scope, id, lease_id, phase, epoch, updated_epoch, state, inbox, unresolved, parked, unread, last_result,
    last_event, created, changed)
  SELECT s, e->>'id', e->>'leaseId', e->>'phase', (e->>'epoch')::bigint, (e->>'updatedEpoch')::bigint, e->>'state', e->>'inbox',
    json_array_length(e->'actions'), (SELECT count(*) FROM json_array_elements(e->'actions') a WHERE (a->>'isParked')::boolean),
    (SELECT count(*) FROM json_array_elements(e->'results') r WHERE (r->>'isUnread')::boolean),
    origin + json_array_length(e->'results'), origin + json_array_length(e->'history'), (e->>'createdMs')::float8,
    (e->>'changedMs')::float8
  RETURNING number INTO w;
  INSERT INTO action SELECT w, a->>'id', a->>'target', (a->>'epoch')::bigint, a->>'leaseId', (a->>'priority')::int, a->>'body',
    (a->>'isParked')::boolean FROM json_array_elements(e->'actions') a;
  INSERT INTO taken SELECT w, t->>'target', (t->>'epoch')::bigint, t->>'actionId' FROM json_array_elements(e->'taken') t;
  INSERT INTO result SELECT w, origin + n, r->>'actionId', r->>'target', (r->>'epoch')::bigint, r->>'outcome', r->>'json',
    (r->>'atMs')::float8, (r->>'isUnread')::boolean, (r->>'isKnown')::boolean
  FROM json_array_elements(e->'results') WITH ORDINALITY AS t(r, n);
  INSERT INTO history SELECT w, origin + n, (h->>'atMs')::float8, (h->>'epoch')::bigint, h->>'leaseId', h->>'what'
  FROM json_array_elements(e->'history') WITH ORDINALITY AS t(h, n);
  IF e->>'run' IS NOT NULL OR json_array_length(e->'steps') + json_array_length(e->'signals') > 0 THEN
    INSERT INTO run (workflow, scope, function, phase, due, tries, waits, value, input, steps, signals, bytes)
    SELECT w, s, r->>'function', coalesce(r->>'phase', 'running'), (r->>'dueUs')::bigint, coalesce((r->>'tries')::int, 0),
      coalesce(r->>'waits', 'null'), coalesce(r->>'value', 'null'), coalesce(r->>'input', 'null'), json_array_length(e->'steps'),
      json_array_length(e->'signals'), coalesce((SELECT sum(octet_length(k->>'json')) FROM (SELECT json_array_elements(e->'steps') AS k
        UNION ALL SELECT json_array_elements(e->'signals')) kept WHERE NOT coalesce((k->>'isReceived')::boolean, false)), 0)
    FROM (SELECT e->'run' AS r) one;
  END IF;
  INSERT INTO run_step SELECT w, t->>'name', t->>'kind', (t->>'isDone')::boolean, t->>'json', (t->>'atUs')::float8 / 1000, n - 1
  FROM json_array_elements(e->'steps') WITH ORDINALITY AS x(t, n);
  INSERT INTO run_signal SELECT w, t->>'id', t->>'name', t->>'json', (t->>'atUs')::float8 / 1000, n - 1, (t->>'isReceived')::boolean
  FROM json_array_elements(e->'signals') WITH ORDINALITY AS x(t, n);
END $$;

CREATE FUNCTION import_session(s text, e json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE made bigint;
BEGIN
  INSERT INTO session (scope, id, tenant, kind, label, state, revision, body, status, priority, clients, created, changed)
  VALUES (s, e->>'id', e->>'tenant', e->>'kind', e->>'label', e->>'state', (e->>'revision')::bigint, e->>'body', e->>'status',
    (e->>'priority')::int, (e->>'clientCount')::int, (e->>'createdMs')::float8, (e->>'changedMs')::float8)
  RETURNING number INTO made;
  INSERT INTO session_key SELECT s, k, made FROM json_array_elements_text(e->'keys') k;
  INSERT INTO session_client SELECT made, c FROM json_array_elements_text(e->'clients') c;
END $$;

-- In the stream of an action, the place of an entry is the epoch of its action.
CREATE FUNCTION import_lane(s text, e json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  of_stream bigint;
  of_lane text := e->>'lane';
  place bigint := 0;
  first bigint;
  x json;
BEGIN
  PERFORM ensure_streams(s, ARRAY[e->>'stream']);
  of_stream := stream_number(s, e->>'stream');
  FOR x IN SELECT * FROM json_array_elements(e->'entries') LOOP
    place := place + 1;
    IF starts_with(e->>'stream', 'action:') THEN
      place := greatest(place, (SELECT a.epoch FROM workflow w JOIN action a ON a.workflow = w.number
        WHERE w.scope = s AND w.id = of_lane AND a.id = (x->>'json')::json #>> '{}'));
    END IF;
    INSERT INTO entry VALUES (of_stream, of_lane, place, (x->>'priority')::int, x->>'json');
    IF first IS NULL THEN
      first := place;
      PERFORM give_turn(of_stream, of_lane, place, (x->>'priority')::int);
    END IF;
  END LOOP;
  UPDATE lane SET due = (e->>'dueUs')::bigint, tries = (e->>'tries')::int WHERE stream = of_stream AND lane = of_lane;
END $$;
