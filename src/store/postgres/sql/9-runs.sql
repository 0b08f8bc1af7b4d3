-- Runs of workflow functions, with the steps and signals of a workflow. A verb locks the workflow
-- first, then its run. `run_due` locks runs alone, and waits for none of them.

-- One row for each workflow with a function, a step or a signal. `function` is null if no function
-- runs the workflow.
CREATE TABLE IF NOT EXISTS run (
  workflow bigint PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  function text COLLATE "C",
  phase text NOT NULL DEFAULT 'running',
  -- Null if no time is set.
  due bigint,
  tries int NOT NULL DEFAULT 0,
  waits text NOT NULL DEFAULT 'null',
  value text NOT NULL DEFAULT 'null',
  input text NOT NULL DEFAULT 'null',
  steps int NOT NULL DEFAULT 0,
  signals int NOT NULL DEFAULT 0,
  bytes int NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS run_due ON run (scope, function, (phase = 'running'), due, workflow) WHERE due IS NOT NULL;
CREATE TABLE IF NOT EXISTS run_step (
  workflow bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  done boolean NOT NULL,
  json text NOT NULL,
  at float8 NOT NULL,
  number int NOT NULL,
  PRIMARY KEY (workflow, name)
);
CREATE TABLE IF NOT EXISTS run_signal (
  workflow bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  name text NOT NULL,
  json text NOT NULL,
  at float8 NOT NULL,
  number int NOT NULL,
  received boolean NOT NULL,
  PRIMARY KEY (workflow, id)
);

-- ---- Rows ----

CREATE FUNCTION lock_run(w bigint) RETURNS run LANGUAGE plpgsql AS $$
DECLARE r run;
BEGIN
  SELECT * INTO r FROM run WHERE workflow = w FOR UPDATE;
  RETURN r;
END $$;

CREATE FUNCTION ensure_run(w workflow) RETURNS run LANGUAGE plpgsql AS $$
DECLARE r run := lock_run(w.number);
BEGIN
  IF r.workflow IS NULL THEN INSERT INTO run (workflow, scope) VALUES (w.number, w.scope) RETURNING * INTO r; END IF;
  RETURN r;
END $$;

CREATE FUNCTION save_run(r run) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE run SET phase = r.phase, due = r.due, tries = r.tries, waits = r.waits, value = r.value, steps = r.steps,
    signals = r.signals, bytes = r.bytes WHERE workflow = r.workflow;
END $$;

-- A step that is there keeps its time.
CREATE FUNCTION put_step(r run, step_name text, step_kind text, is_done boolean, j text, at_ms float8) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_step VALUES (r.workflow, step_name, step_kind, is_done, j, at_ms, r.steps)
  ON CONFLICT (workflow, name) DO UPDATE SET kind = excluded.kind, done = excluded.done, json = excluded.json;
END $$;

-- Keeps the step of a call with its action. A step that is there stays as it is.
CREATE FUNCTION keep_call(w workflow, step_name text, j text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r run;
BEGIN
  IF EXISTS (SELECT FROM run_step WHERE workflow = w.number AND name = step_name) THEN RETURN; END IF;
  r := ensure_run(w);
  PERFORM put_step(r, step_name, 'call', true, j, wall_ms());
  r.steps := r.steps + 1;
  r.bytes := r.bytes + octet_length(j);
  PERFORM save_run(r);
END $$;

CREATE FUNCTION delete_runs(w bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM run_step WHERE workflow = w;
  DELETE FROM run_signal WHERE workflow = w;
  DELETE FROM run WHERE workflow = w;
END $$;

-- Null if no function runs the workflow.
CREATE FUNCTION run_json(r run, now bigint) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN r.function IS NOT NULL THEN json_build_object('function', r.function, 'phase', r.phase, 'tries', r.tries,
    'waits', r.waits, 'value', r.value,
    'dueInMs', CASE WHEN r.phase <> 'running' AND r.due IS NOT NULL THEN greatest(0, r.due - now) / 1000.0 END) END $$;

CREATE FUNCTION run_full(r run) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT json_build_object('kind', 'full', 'steps', r.steps, 'signals', r.signals, 'bytes', r.bytes)::text $$;

CREATE FUNCTION run_hint(w workflow, function_name text) RETURNS json LANGUAGE sql STABLE AS
$$ SELECT json_build_array(w.scope || 'run:' || function_name, w.id) $$;

-- ---- Verbs ----

-- request: scope, id, function, input.
CREATE FUNCTION run_start(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  is_new boolean := make_workflow(in_scope, q->>'id');
  w workflow;
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = q->>'id';
  IF NOT is_new THEN
    RETURN json_build_object('kind', 'found', 'function', (SELECT r.function FROM run r WHERE r.workflow = w.number));
  END IF;
  INSERT INTO run (workflow, scope, function, due, input) VALUES (w.number, w.scope, q->>'function', clock_us(), q->>'input');
  w := add_history(w, json_build_object('kind', 'started', 'function', q->>'function')::text);
  PERFORM save_workflow(w);
  RETURN json_build_object('kind', 'started', 'hints', json_build_array(run_hint(w, q->>'function')));
END $$;

-- Gives out up to `most` due runs of a function: those that were given out before, or the others.
-- A run that another transaction has locked is being given out, or changed: its hint follows.
CREATE FUNCTION give_out_runs(in_scope text, name text, were_given boolean, most int, grace_us bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  now bigint := clock_us();
  ids text[] := '{}';
  looked int;
  u record;
  free_at bigint;
BEGIN
  WHILE cardinality(ids) < most LOOP
    looked := 0;
    FOR u IN SELECT r.workflow, w.id FROM run r JOIN workflow w ON w.number = r.workflow
      WHERE r.scope = in_scope AND r.function = name AND (r.phase = 'running') = were_given AND r.due <= now
      ORDER BY r.due, r.workflow LIMIT 100 FOR UPDATE OF r SKIP LOCKED
    LOOP
      looked := looked + 1;
      free_at := (SELECT lives_until(l) FROM lease l WHERE l.key = in_scope || 'workflow:lease:' || u.id AND l.holder IS NOT NULL);
      IF free_at > now THEN
        -- A run that has just been paused is free in a moment. One that was given out is free when its holder has died.
        IF NOT were_given THEN free_at := least(free_at, now + 200000); END IF;
        UPDATE run SET due = free_at + 1000 WHERE workflow = u.workflow;
      ELSIF cardinality(ids) < most THEN
        UPDATE run SET due = now + grace_us, phase = 'running' WHERE workflow = u.workflow;
        ids := ids || u.id;
      END IF;
    END LOOP;
    EXIT WHEN looked < 100;
  END LOOP;
  RETURN ids;
END $$;

CREATE FUNCTION first_due_in(in_scope text, names json, were_given boolean) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT greatest(0, min(f.due) - clock_us()) / 1000.0 FROM json_array_elements_text(names) AS n(name), LATERAL (
    SELECT min(r.due) AS due FROM run r WHERE r.scope = in_scope AND r.function = n.name AND (r.phase = 'running') = were_given
      AND r.due IS NOT NULL) f HAVING min(f.due) IS NOT NULL);
END $$;

-- request: scope, functions, most, grace (ms). Returns [[[workflow, function]], next ms, given ms].
CREATE FUNCTION run_due(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  scope text := q->>'scope';
  most int := q->>'most';
  grace_us bigint := ((q->>'grace')::float8 * 1000)::bigint;
  name text;
  were_given boolean;
  one text;
  runs json[] := '{}';
BEGIN
  FOR name IN SELECT f FROM json_array_elements_text(q->'functions') WITH ORDINALITY AS t(f, n) ORDER BY n LOOP
    FOREACH were_given IN ARRAY ARRAY[false, true] LOOP
      FOREACH one IN ARRAY give_out_runs(scope, name, were_given, most - cardinality(runs), grace_us) LOOP
        runs := runs || json_build_array(one, name);
      END LOOP;
    END LOOP;
  END LOOP;
  RETURN json_build_array(to_json(runs), first_due_in(scope, q->'functions', false), first_due_in(scope, q->'functions', true));
END $$;

-- request: scope, id. Returns null, or {run, input, steps, signals, signalCount, nowMs}.
CREATE FUNCTION run_load(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  w bigint := (SELECT number FROM workflow WHERE scope = q->>'scope' AND id = q->>'id');
  r run;
BEGIN
  IF w IS NULL THEN RETURN 'null'; END IF;
  SELECT * INTO r FROM run WHERE workflow = w;
  RETURN json_build_object('run', run_json(r, clock_us()), 'input', coalesce(r.input, 'null'),
    'steps', (SELECT coalesce(json_agg(json_build_object('name', s.name, 'kind', s.kind, 'isDone', s.done, 'value', s.json,
      'atMs', s.at) ORDER BY s.at, s.number), '[]') FROM run_step s WHERE s.workflow = w),
    'signals', (SELECT coalesce(json_agg(json_build_object('id', s.id, 'name', s.name, 'value', s.json, 'atMs', s.at)
      ORDER BY s.number), '[]') FROM run_signal s WHERE s.workflow = w AND NOT s.received),
    'signalCount', coalesce(r.signals, 0), 'nowMs', wall_ms());
END $$;

-- request: scope, ids.
CREATE FUNCTION run_read(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  now bigint := clock_us();
BEGIN
  RETURN coalesce((SELECT json_agg(run_json(r, now) ORDER BY n)
    FROM json_array_elements_text(q->'ids') WITH ORDINALITY AS t(id, n)
    LEFT JOIN workflow w ON w.scope = in_scope AND w.id = t.id LEFT JOIN run r ON r.workflow = w.number), '[]');
END $$;

-- request: scope, id, leaseId, name, kind, isDone, json, receives, mostSteps, mostBytes.
CREATE FUNCTION run_keep(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  is_done boolean := q->>'isDone';
  w workflow;
  refused text;
  old run_step;
  r run;
  now float8;
  bytes int;
  freed int;
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = q->>'id' FOR UPDATE;
  refused := refusal(w, in_scope, q->>'id', q->>'leaseId');
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  now := wall_ms();
  SELECT * INTO old FROM run_step WHERE workflow = w.number AND name = q->>'name';
  -- The same request may be sent again, because its answer was lost.
  IF old.name IS NOT NULL AND (old.done OR NOT is_done) THEN
    RETURN json_build_object('kind', 'done', 'atMs', old.at, 'nowMs', now);
  END IF;
  r := ensure_run(w);
  bytes := r.bytes + octet_length(q->>'json') - coalesce(octet_length(old.json), 0);
  IF (old.name IS NULL AND r.steps >= (q->>'mostSteps')::int) OR bytes > (q->>'mostBytes')::int THEN RETURN run_full(r); END IF;
  PERFORM put_step(r, q->>'name', q->>'kind', is_done, q->>'json', now);
  r.bytes := bytes;
  IF old.name IS NULL THEN r.steps := r.steps + 1; END IF;
  IF q->>'receives' IS NOT NULL THEN
    SELECT octet_length(json) INTO freed FROM run_signal WHERE workflow = w.number AND id = q->>'receives' AND NOT received;
    IF FOUND THEN
      -- Its value is in the step that receives it.
      UPDATE run_signal SET received = true, json = 'null' WHERE workflow = w.number AND id = q->>'receives';
      r.bytes := r.bytes - freed;
    END IF;
  END IF;
  PERFORM save_run(r);
  w := add_history(w, json_build_object('kind', 'kept', 'name', q->>'name', 'step', q->>'kind', 'isDone', is_done)::text);
  PERFORM save_workflow(w);
  RETURN json_build_object('kind', 'done', 'atMs', coalesce(old.at, now), 'nowMs', now);
END $$;

-- Keeps a step in the user's own transaction, so that its result and the user's rows are committed together. A step that is
-- there fails: the rows of another transaction are there, too. `refusal` locks the lease as `guard` does. request: as of `run_keep`.
CREATE FUNCTION keep_step(request text) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  w workflow;
  is_there boolean;
  reply json;
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = q->>'scope' AND id = q->>'id' FOR UPDATE;
  -- Under the lock: another transaction may have kept it.
  is_there := EXISTS (SELECT FROM run_step WHERE workflow = w.number AND name = q->>'name');
  reply := run_keep(request);
  IF reply->>'kind' = 'done' AND NOT is_there THEN RETURN; END IF;
  RAISE EXCEPTION USING ERRCODE = 'HF004',
    MESSAGE = concat_ws(' ', 'STEP_REFUSED', CASE reply->>'kind' WHEN 'done' THEN 'kept' ELSE reply->>'kind' END,
      reply->>'leaseId', reply->>'steps', reply->>'signals', reply->>'bytes'),
    DETAIL = format('The transaction is to keep step %L of workflow %L.', q->>'name', q->>'id'),
    HINT = 'Roll the transaction back.';
END $$;

-- request: scope, id, signal, name, json, mostSignals, mostBytes.
CREATE FUNCTION run_signal(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  w workflow;
  r run;
  bytes int;
  hints json[] := '{}';
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = q->>'scope' AND id = q->>'id' FOR UPDATE;
  IF w.number IS NULL THEN RETURN '{"kind":"absent"}'; END IF;
  IF EXISTS (SELECT FROM run_signal WHERE workflow = w.number AND id = q->>'signal') THEN RETURN '{"kind":"kept"}'; END IF;
  r := ensure_run(w);
  IF r.phase = 'done' THEN RETURN '{"kind":"ended"}'; END IF;
  bytes := r.bytes + octet_length(q->>'json');
  IF r.signals >= (q->>'mostSignals')::int OR bytes > (q->>'mostBytes')::int THEN RETURN run_full(r); END IF;
  INSERT INTO run_signal VALUES (w.number, q->>'signal', q->>'name', q->>'json', wall_ms(), r.signals, false);
  r.signals := r.signals + 1;
  r.bytes := bytes;
  IF r.phase = 'suspended' THEN
    r.due := clock_us();
    hints := hints || run_hint(w, r.function);
  END IF;
  PERFORM save_run(r);
  w := add_history(w, json_build_object('kind', 'signalled', 'name', q->>'name')::text);
  PERFORM save_workflow(w);
  IF w.inbox <> '' THEN hints := hints || json_build_array(w.scope || w.inbox, w.id); END IF;
  RETURN json_build_object('kind', 'kept', 'hints', to_json(hints));
END $$;

-- request: scope, id, leaseId, phase, signalCount, wake (ms or null), tries, waits, value, detail (JSON), forgets.
CREATE FUNCTION run_pause(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  w workflow;
  refused text;
  r run;
  forgotten record;
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = q->>'id' FOR UPDATE;
  refused := refusal(w, in_scope, q->>'id', q->>'leaseId');
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  r := lock_run(w.number);
  IF r.function IS NULL THEN RETURN not_held(NULL); END IF;
  IF r.signals <> (q->>'signalCount')::int THEN RETURN '{"kind":"signalled"}'; END IF;
  WITH gone AS (
    DELETE FROM run_step WHERE workflow = w.number AND name IN (SELECT json_array_elements_text(q->'forgets')) RETURNING json
  )
  SELECT count(*)::int AS steps, coalesce(sum(octet_length(json)), 0)::int AS bytes INTO forgotten FROM gone;
  r.steps := r.steps - forgotten.steps;
  r.bytes := r.bytes - forgotten.bytes;
  r.phase := q->>'phase';
  r.tries := q->>'tries';
  r.due := clock_us() + ceil((q->>'wake')::float8 * 1000)::bigint;
  r.waits := q->>'waits';
  r.value := q->>'value';
  PERFORM save_run(r);
  w := add_history(w, json_build_object('kind', 'paused', 'phase', r.phase, 'detail', (q->>'detail')::json)::text);
  PERFORM save_workflow(w);
  RETURN json_build_object('kind', 'done', 'hints', CASE WHEN r.phase IN ('done', 'failed') OR r.due IS NOT NULL
    THEN json_build_array(run_hint(w, r.function)) ELSE '[]' END);
END $$;

-- request: scope, id.
CREATE FUNCTION run_restart(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  w workflow;
  r run;
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = q->>'scope' AND id = q->>'id' FOR UPDATE;
  r := lock_run(w.number);
  IF r.function IS NULL THEN RETURN '{"kind":"absent"}'; END IF;
  IF r.phase <> 'failed' THEN RETURN json_build_object('kind', 'not-failed', 'phase', r.phase); END IF;
  r.phase := 'retrying';
  r.tries := 0;
  r.due := clock_us();
  PERFORM save_run(r);
  w := add_history(w, '{"kind":"restarted"}');
  PERFORM save_workflow(w);
  RETURN json_build_object('kind', 'restarted', 'function', r.function, 'hints', json_build_array(run_hint(w, r.function)));
END $$;
