-- Workflows: steps of orchestrators and of processors. A step checks the lease of its workflow with
-- FOR KEY SHARE, as `guard` does: no other tenure is granted the lease before the step has committed.

CREATE TABLE IF NOT EXISTS workflow (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  lease_id text COLLATE "C",
  -- begun: `lease_id` has the tenure. handed: it has yet to begin. revoked: no tenure.
  phase text NOT NULL,
  epoch bigint NOT NULL,
  -- The epoch after the last update of this tenure; null before the first.
  updated_epoch bigint,
  state text NOT NULL,
  inbox text NOT NULL,
  unresolved int NOT NULL,
  parked int NOT NULL,
  unread int NOT NULL,
  last_result bigint NOT NULL,
  last_event bigint NOT NULL,
  created float8 NOT NULL,
  changed float8 NOT NULL,
  UNIQUE (scope, id)
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS workflow_tenure ON workflow (scope, lease_id) WHERE lease_id IS NOT NULL;
-- Unresolved actions. The rest of an entry in a stream: so that an action can get another epoch
-- while it is claimed.
CREATE TABLE IF NOT EXISTS action (
  workflow bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  target text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  lease_id text NOT NULL,
  priority int NOT NULL,
  body text NOT NULL,
  parked boolean NOT NULL,
  PRIMARY KEY (workflow, id)
);
CREATE INDEX IF NOT EXISTS action_of_target ON action (workflow, target, epoch);
CREATE TABLE IF NOT EXISTS taken (
  workflow bigint NOT NULL,
  target text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  action text NOT NULL,
  PRIMARY KEY (workflow, target)
);
CREATE TABLE IF NOT EXISTS result (
  workflow bigint NOT NULL,
  position bigint NOT NULL,
  action text COLLATE "C" NOT NULL,
  target text NOT NULL,
  epoch bigint NOT NULL,
  outcome text NOT NULL,
  json text NOT NULL,
  at float8 NOT NULL,
  unread boolean NOT NULL,
  known boolean NOT NULL,
  PRIMARY KEY (workflow, position)
);
CREATE INDEX IF NOT EXISTS result_unread ON result (workflow, position) WHERE unread;
CREATE INDEX IF NOT EXISTS result_of_action ON result (workflow, action) WHERE known;
CREATE TABLE IF NOT EXISTS history (
  workflow bigint NOT NULL,
  position bigint NOT NULL,
  at float8 NOT NULL,
  epoch bigint NOT NULL,
  lease_id text,
  what text NOT NULL,
  PRIMARY KEY (workflow, position)
);

-- ---- Rows ----

-- Returns false if there is one of this id.
CREATE FUNCTION make_workflow(in_scope text, workflow_id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  -- Made from the time: a position in a removed workflow of this id is no position in this one.
  INSERT INTO workflow (scope, id, phase, epoch, state, inbox, unresolved, parked, unread, last_result, last_event, created, changed)
  VALUES (in_scope, workflow_id, 'begun', 0, '"initialized"', '', 0, 0, 0, clock_us(), clock_us(), wall_ms(), wall_ms())
  ON CONFLICT (scope, id) DO NOTHING;
  RETURN FOUND;
END $$;

CREATE FUNCTION save_workflow(w workflow) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE workflow SET lease_id = w.lease_id, phase = w.phase, epoch = w.epoch, updated_epoch = w.updated_epoch,
    state = w.state, inbox = w.inbox, unresolved = w.unresolved, parked = w.parked, unread = w.unread,
    last_result = w.last_result, last_event = w.last_event, changed = wall_ms() WHERE number = w.number;
END $$;

CREATE FUNCTION snapshot_json(w workflow) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('id', w.id, 'leaseId', w.lease_id, 'inbox', CASE WHEN w.phase = 'begun' THEN w.inbox END,
    'epoch', w.epoch, 'state', w.state, 'unresolved', w.unresolved, 'parked', w.parked, 'unread', w.unread, 'createdAtMs', w.created, 'changedAtMs', w.changed) $$;

CREATE FUNCTION action_json(a action) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('id', a.id, 'target', a.target, 'priority', a.priority, 'body', a.body, 'leaseId', a.lease_id,
    'epoch', a.epoch) $$;

CREATE FUNCTION result_json(r result) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('position', r.position::text, 'actionId', r.action, 'target', r.target, 'epoch', r.epoch,
    'outcome', r.outcome, 'value', r.json, 'atMs', r.at) $$;

-- Adds an event to the history, with the workflow's current epoch and tenure.
CREATE FUNCTION add_history(INOUT w workflow, happened text) LANGUAGE plpgsql AS $$
BEGIN
  w.last_event := w.last_event + 1;
  INSERT INTO history VALUES (w.number, w.last_event, wall_ms(), w.epoch, w.lease_id, happened);
  DELETE FROM history WHERE workflow = w.number AND position <= w.last_event - 1000;
END $$;

-- Gives an action the workflow's epoch and tenure.
CREATE FUNCTION renumber_action(INOUT w workflow, INOUT a action) LANGUAGE plpgsql AS $$
BEGIN
  a.workflow := w.number;
  a.lease_id := coalesce(w.lease_id, '');
  a.epoch := w.epoch;
  a.parked := false;
  w.epoch := w.epoch + 1;
  INSERT INTO action SELECT a.* ON CONFLICT (workflow, id) DO UPDATE SET target = excluded.target, epoch = excluded.epoch,
    lease_id = excluded.lease_id, priority = excluded.priority, body = excluded.body, parked = false;
END $$;

-- Emits an action: renumbers it, and puts it into the lane of its workflow.
CREATE FUNCTION emit_action(INOUT w workflow, INOUT a action) LANGUAGE plpgsql AS $$
DECLARE done record;
BEGIN
  SELECT * INTO done FROM renumber_action(w, a);
  w := done.w;
  a := done.a;
  PERFORM add_entry(stream_number(w.scope, 'action:' || a.target), w.id, a.priority, to_json(a.id)::text, a.epoch);
END $$;

CREATE FUNCTION park_action(INOUT w workflow, action_id text) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE action SET parked = true WHERE workflow = w.number AND id = action_id;
  w.parked := w.parked + 1;
END $$;

CREATE FUNCTION resolve_action(INOUT w workflow, a action) LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM action WHERE workflow = w.number AND id = a.id;
  w.unresolved := w.unresolved - 1;
  IF a.parked THEN w.parked := w.parked - 1; END IF;
END $$;

CREATE FUNCTION find_result(w bigint, action_id text) RETURNS result LANGUAGE plpgsql AS $$
DECLARE found_result result;
BEGIN
  SELECT * INTO found_result FROM result WHERE workflow = w AND action = action_id AND known;
  RETURN found_result;
END $$;

-- The action of a lane's first entry; null if there is none.
CREATE FUNCTION first_action(w bigint, x lane) RETURNS action LANGUAGE plpgsql AS $$
DECLARE
  a action;
  j json := first_json(x);
BEGIN
  IF json_typeof(j) = 'string' THEN SELECT * INTO a FROM action WHERE workflow = w AND id = j #>> '{}'; END IF;
  RETURN a;
END $$;

-- Marks results as read. An unknown position changes nothing.
CREATE FUNCTION read_results(INOUT w workflow, positions json) LANGUAGE plpgsql AS $$
DECLARE changed int;
BEGIN
  IF json_array_length(positions) = 0 THEN RETURN; END IF;
  UPDATE result SET unread = false WHERE workflow = w.number AND unread
    AND position IN (SELECT p::bigint FROM json_array_elements_text(positions) AS p);
  GET DIAGNOSTICS changed = ROW_COUNT;
  w.unread := w.unread - changed;
  DELETE FROM result WHERE workflow = w.number AND NOT unread AND position <= w.last_result - 1000
    AND position IN (SELECT p::bigint FROM json_array_elements_text(positions) AS p);
END $$;

-- ---- Locks ----

-- Locks the streams of all targets of a workflow's actions, then the workflow. Null if there is none.
CREATE FUNCTION lock_workflow(in_scope text, workflow_id text) RETURNS workflow LANGUAGE plpgsql AS $$
DECLARE
  w workflow;
  locked bigint[];
BEGIN
  FOR attempt IN 1..10 LOOP
    BEGIN
      SELECT coalesce(array_agg(number), '{}') INTO locked FROM (
        SELECT s.number FROM stream s WHERE s.scope = in_scope AND s.name IN (
          SELECT 'action:' || a.target FROM action a JOIN workflow x ON x.number = a.workflow
          WHERE x.scope = in_scope AND x.id = workflow_id)
        ORDER BY s.number FOR UPDATE) l;
      SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = workflow_id FOR UPDATE;
      -- An action may have been emitted to another target in between: then all locks are released.
      IF EXISTS (SELECT FROM action a JOIN stream s ON s.scope = in_scope AND s.name = 'action:' || a.target
          WHERE a.workflow = w.number AND s.number <> ALL (locked)) THEN
        RAISE EXCEPTION USING ERRCODE = 'HF002';
      END IF;
      RETURN w;
    EXCEPTION WHEN SQLSTATE 'HF002' THEN NULL;
    END;
  END LOOP;
  RAISE serialization_failure;
END $$;

-- The holder of a workflow's lease; null if it is free. Keeps it until the transaction ends.
CREATE FUNCTION keep_holder(in_scope text, workflow_id text, OUT holder text, OUT fence bigint) LANGUAGE plpgsql AS $$
BEGIN
  SELECT l.holder, l.fence INTO keep_holder.holder, keep_holder.fence FROM lease l
  WHERE l.key = in_scope || 'workflow:lease:' || workflow_id FOR KEY SHARE;
  IF NOT EXISTS (SELECT FROM lease l WHERE l.key = in_scope || 'workflow:lease:' || workflow_id AND lives_until(l) > clock_us()) THEN
    keep_holder.holder := NULL;
  END IF;
END $$;

CREATE FUNCTION not_held(holder text) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT json_build_object('kind', 'not-held', 'leaseId', nullif(holder, '!revoked'))::text $$;

-- Why this tenure may not take a step; null if it may.
CREATE FUNCTION refusal(w workflow, in_scope text, workflow_id text, lease_id text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE held record;
BEGIN
  SELECT * INTO held FROM keep_holder(in_scope, workflow_id);
  IF held.holder IS DISTINCT FROM lease_id THEN RETURN not_held(held.holder); END IF;
  IF w.lease_id IS DISTINCT FROM refusal.lease_id THEN RETURN not_held(w.lease_id); END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION hints_for(in_scope text, targets text[]) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_array(in_scope || 'stream:action:' || t, 'action:' || t)), '[]')
    FROM (SELECT DISTINCT unnest(targets) AS t) u);
END $$;

-- Takes actions, sorted by epoch, out of their lanes. Returns the ids of those that stay: none
-- ('nothing'), the claimed ones ('held'), or also the first of a lane that will be first again ('first').
CREATE FUNCTION take_out_of_lanes(w workflow, actions action[], spared text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  ids text[] := '{}';
  f record;
  x lane;
  first_id text;
  is_spared boolean;
BEGIN
  FOR f IN SELECT DISTINCT ON (a.target) a.target, a.id FROM unnest(actions) AS a ORDER BY a.target, a.epoch LOOP
    SELECT * INTO x FROM lane WHERE stream = stream_number(w.scope, 'action:' || f.target) AND lane = w.id;
    CONTINUE WHEN NOT FOUND;
    first_id := first_json(x)::json #>> '{}';
    is_spared := spared <> 'nothing' AND (x.fence > 0 OR (spared = 'first' AND first_id = f.id));
    IF is_spared THEN ids := ids || first_id; END IF;
    PERFORM clear_lane(x, is_spared);
  END LOOP;
  RETURN ids;
END $$;

CREATE FUNCTION unresolved_actions(w bigint) RETURNS action[] LANGUAGE plpgsql AS
$$ BEGIN RETURN (SELECT coalesce(array_agg(a ORDER BY a.epoch), '{}') FROM action a WHERE a.workflow = w); END $$;

-- Emits actions again in the current tenure, in this order. An action in `kept` only gets a new epoch.
CREATE FUNCTION reemit(INOUT w workflow, actions action[], kept text[], OUT emitted action[]) LANGUAGE plpgsql AS $$
DECLARE
  a action;
  done record;
BEGIN
  emitted := '{}';
  FOREACH a IN ARRAY actions LOOP
    IF a.parked THEN w.parked := w.parked - 1; END IF;
    IF a.id = ANY (kept) THEN
      SELECT * INTO done FROM renumber_action(w, a);
    ELSE
      SELECT * INTO done FROM emit_action(w, a);
    END IF;
    w := done.w;
    emitted := emitted || done.a;
    w := add_history(w, json_build_object('kind', 'reemitted', 'actionId', a.id, 'target', a.target)::text);
  END LOOP;
END $$;

-- Parks all actions that no processor has claimed, until they are emitted again.
CREATE FUNCTION park_all(INOUT w workflow) LANGUAGE plpgsql AS $$
DECLARE
  actions action[] := unresolved_actions(w.number);
  spared text[] := take_out_of_lanes(w, actions, 'held');
  a action;
BEGIN
  FOREACH a IN ARRAY actions LOOP
    IF NOT a.parked AND a.id <> ALL (spared) THEN w := park_action(w, a.id); END IF;
  END LOOP;
END $$;

-- ---- Steps of an orchestrator ----

-- request: scope, id, leaseId, fence, inbox, resume.
CREATE FUNCTION workflow_begin(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  tenant text := q->>'leaseId';
  w workflow := lock_workflow(in_scope, q->>'id');
  held record;
  drops boolean;
  actions action[];
  spared text[];
  a action;
  again record;
BEGIN
  SELECT * INTO held FROM keep_holder(in_scope, q->>'id');
  IF held.holder IS DISTINCT FROM tenant OR held.fence <> (q->>'fence')::bigint THEN RETURN not_held(held.holder); END IF;
  IF w.number IS NULL THEN
    PERFORM make_workflow(in_scope, q->>'id');
    w := lock_workflow(in_scope, q->>'id');
  END IF;
  IF w.lease_id = tenant AND w.phase = 'begun' THEN
    -- Another orchestrator uses the lease id of this one. A tenure has one orchestrator.
    IF w.inbox <> q->>'inbox' THEN RETURN not_held(tenant); END IF;
    RETURN json_build_object('kind', 'begun', 'workflow', snapshot_json(w), 'reemitted', '[]'::json, 'dropped', '[]'::json,
      'hints', '[]'::json);
  END IF;
  drops := w.phase = 'revoked' AND NOT (q->>'resume')::boolean;
  w.lease_id := tenant;
  w.phase := 'begun';
  w.updated_epoch := NULL;
  w.inbox := q->>'inbox';
  actions := unresolved_actions(w.number);
  w := add_history(w, json_build_object('kind', 'claimed', 'reemitted', CASE WHEN drops THEN 0 ELSE cardinality(actions) END,
    'dropped', CASE WHEN drops THEN cardinality(actions) ELSE 0 END)::text);
  spared := take_out_of_lanes(w, actions, CASE WHEN drops THEN 'nothing' ELSE 'first' END);
  IF drops THEN
    FOREACH a IN ARRAY actions LOOP
      w := resolve_action(w, a);
      w := add_history(w, json_build_object('kind', 'dropped', 'actionId', a.id, 'target', a.target)::text);
    END LOOP;
    PERFORM save_workflow(w);
    SELECT * INTO w FROM workflow WHERE number = w.number;
    RETURN json_build_object('kind', 'begun', 'workflow', snapshot_json(w), 'reemitted', '[]'::json,
      'dropped', (SELECT coalesce(json_agg(action_json(x) ORDER BY x.epoch), '[]') FROM unnest(actions) AS x), 'hints', '[]'::json);
  END IF;
  -- By epoch, but an action that stays the first of its lane comes before the others of its target.
  SELECT coalesce(array_agg(x ORDER BY CASE WHEN x.id = ANY (spared)
    THEN (SELECT min(y.epoch) FROM unnest(actions) AS y WHERE y.target = x.target) - 0.5 ELSE x.epoch END), '{}')
  INTO actions FROM unnest(actions) AS x;
  SELECT * INTO again FROM reemit(w, actions, spared);
  w := again.w;
  PERFORM save_workflow(w);
  SELECT * INTO w FROM workflow WHERE number = w.number;
  RETURN json_build_object('kind', 'begun', 'workflow', snapshot_json(w),
    'reemitted', (SELECT coalesce(json_agg(action_json(x) ORDER BY x.epoch), '[]') FROM unnest(again.emitted) AS x),
    'dropped', '[]'::json, 'hints', hints_for(w.scope, (SELECT array_agg(x.target) FROM unnest(actions) AS x)));
END $$;

-- Ends a step: marks results as read, and saves the workflow.
CREATE FUNCTION finish_step(w workflow, positions json, hints json) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  w := read_results(w, positions);
  PERFORM save_workflow(w);
  RETURN json_build_object('kind', 'done', 'epoch', w.epoch, 'hints', hints);
END $$;

-- request: scope, id, leaseId, read, epoch, actions: [{id, target, priority, body, type (JSON), bytes, step: [name, json]}],
-- mostUnresolved, mostUnread.
CREATE FUNCTION workflow_emit(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  count_all int := json_array_length(q->'actions');
  w workflow;
  refused text;
  known int;
  following int;
  unread_left int;
  n record;
  a action;
  done record;
  targets text[];
BEGIN
  SELECT array_agg(e->>'target') INTO targets FROM json_array_elements(q->'actions') AS e;
  PERFORM ensure_streams(in_scope, (SELECT array_agg('action:' || t) FROM unnest(targets) AS t));
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = q->>'id' FOR UPDATE;
  refused := refusal(w, in_scope, q->>'id', q->>'leaseId');
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  SELECT count(*) INTO known FROM json_array_elements(q->'actions') AS e
  WHERE EXISTS (SELECT FROM action x WHERE x.workflow = w.number AND x.id = e->>'id')
    OR EXISTS (SELECT FROM result r WHERE r.workflow = w.number AND r.action = e->>'id' AND r.known);
  IF known = count_all THEN RETURN finish_step(w, q->'read', '[]'); END IF;
  IF w.epoch <> (q->>'epoch')::bigint OR known > 0 THEN RETURN json_build_object('kind', 'epoch', 'epoch', w.epoch); END IF;
  following := w.unresolved + count_all;
  IF following > (q->>'mostUnresolved')::int OR w.unread + following > (q->>'mostUnread')::int THEN
    SELECT w.unread - count(*) INTO unread_left FROM result r WHERE r.workflow = w.number AND r.unread
      AND r.position IN (SELECT p::bigint FROM json_array_elements_text(q->'read') AS p);
    IF following > (q->>'mostUnresolved')::int OR unread_left + following > (q->>'mostUnread')::int THEN
      RETURN json_build_object('kind', 'full', 'unresolved', w.unresolved, 'unread', unread_left);
    END IF;
  END IF;
  FOR n IN SELECT e->>'id' AS id, e->>'target' AS target, (e->>'priority')::int AS priority, e->>'body' AS body,
      e->>'type' AS type, (e->>'bytes')::bigint AS bytes, e->'step' AS step
    FROM json_array_elements(q->'actions') WITH ORDINALITY AS t(e, i) ORDER BY i
  LOOP
    a.id := n.id;
    a.target := n.target;
    a.priority := n.priority;
    a.body := n.body;
    SELECT * INTO done FROM emit_action(w, a);
    w := done.w;
    w.unresolved := w.unresolved + 1;
    w := add_history(w, CASE WHEN n.type IS NULL THEN json_build_object('kind', 'emitted', 'actionId', n.id, 'target', n.target)
      ELSE json_build_object('kind', 'emitted', 'actionId', n.id, 'target', n.target, 'type', n.type::json,
        'payloadBytes', n.bytes) END::text);
    IF n.step IS NOT NULL THEN PERFORM keep_call(w, n.step->>0, n.step->>1); END IF;
  END LOOP;
  RETURN finish_step(w, q->'read', hints_for(in_scope, targets));
END $$;

-- request: scope, id, leaseId, read, epoch, state, mostHistory.
CREATE FUNCTION workflow_update(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  w workflow;
  refused text;
  bytes int := octet_length(q->>'state');
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = q->>'id' FOR UPDATE;
  refused := refusal(w, in_scope, q->>'id', q->>'leaseId');
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  IF w.updated_epoch = w.epoch AND w.epoch = (q->>'epoch')::bigint + 1 AND w.state = q->>'state' THEN
    RETURN finish_step(w, q->'read', '[]');
  END IF;
  IF w.epoch <> (q->>'epoch')::bigint THEN RETURN json_build_object('kind', 'epoch', 'epoch', w.epoch); END IF;
  w.state := q->>'state';
  w.epoch := w.epoch + 1;
  w.updated_epoch := w.epoch;
  w := add_history(w, CASE WHEN bytes <= (q->>'mostHistory')::int THEN '{"kind":"updated","state":' || w.state || '}'
    ELSE '{"kind":"updated","state":null,"omittedBytes":' || bytes || '}' END);
  RETURN finish_step(w, q->'read', '[]');
END $$;

-- request: scope, id, leaseId, read.
CREATE FUNCTION workflow_mark_read(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  w workflow;
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = q->>'id' FOR UPDATE;
  RETURN coalesce(refusal(w, in_scope, q->>'id', q->>'leaseId'), finish_step(w, q->'read', '[]'));
END $$;

-- request: scope, id, leaseId, read, epoch.
CREATE FUNCTION workflow_unpark(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  w workflow := lock_workflow(in_scope, q->>'id');
  refused text := refusal(w, in_scope, q->>'id', q->>'leaseId');
  parked_actions action[];
  again record;
BEGIN
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  IF w.epoch <> (q->>'epoch')::bigint THEN RETURN json_build_object('kind', 'epoch', 'epoch', w.epoch); END IF;
  SELECT coalesce(array_agg(a ORDER BY a.epoch), '{}') INTO parked_actions FROM action a WHERE a.workflow = w.number AND a.parked;
  SELECT * INTO again FROM reemit(w, parked_actions, '{}');
  RETURN finish_step(again.w, q->'read', hints_for(in_scope, (SELECT array_agg(x.target) FROM unnest(parked_actions) AS x)));
END $$;

-- request: scope, id, leaseId, read, epoch, successor, window (ms), quarantine (ms).
CREATE FUNCTION workflow_handoff(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  w workflow := lock_workflow(in_scope, q->>'id');
  refused text := refusal(w, in_scope, q->>'id', q->>'leaseId');
  minted bigint;
BEGIN
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  IF w.epoch <> (q->>'epoch')::bigint THEN RETURN json_build_object('kind', 'epoch', 'epoch', w.epoch); END IF;
  w := park_all(w);
  w.epoch := w.epoch + 1;
  w := add_history(w, json_build_object('kind', 'transferred', 'successor', q->>'successor', 'transferEpoch', w.epoch - 1)::text);
  w.lease_id := q->>'successor';
  w.phase := 'handed';
  w.updated_epoch := NULL;
  PERFORM finish_step(w, q->'read', '[]');
  minted := hand_over(w.scope || 'workflow:lease:' || w.id, q->>'successor', ((q->>'window')::float8 * 1000)::bigint, 0,
    (q->>'quarantine')::bigint * 1000);
  RETURN json_build_object('kind', 'done', 'epoch', w.epoch, 'fence', minted,
    'hints', json_build_array(json_build_array(w.scope || split_part(q->>'successor', '/', 1), 'workflow:lease:' || w.id)));
END $$;

-- request: scope, leaseId, reason.
CREATE FUNCTION workflow_revoke(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  w workflow;
  found_id text := (SELECT id FROM workflow WHERE scope = in_scope AND lease_id = q->>'leaseId');
  held record;
  hints json[];
BEGIN
  IF found_id IS NULL THEN RETURN '{"kind":"not-found","hints":[]}'; END IF;
  w := lock_workflow(in_scope, found_id);
  IF w.lease_id IS DISTINCT FROM q->>'leaseId' THEN RETURN '{"kind":"not-found","hints":[]}'; END IF;
  w := park_all(w);
  w := add_history(w, '{"kind":"revoked","reason":' || (q->>'reason') || '}');
  w.lease_id := NULL;
  w.phase := 'revoked';
  w.updated_epoch := NULL;
  PERFORM save_workflow(w);
  hints := ARRAY[json_build_array(w.scope || w.inbox, w.id)];
  SELECT * INTO held FROM keep_holder(w.scope, w.id);
  -- An expired lease is revoked, too, so that its holder cannot put it back. A later holder keeps its lease.
  IF held.holder IS NULL OR held.holder = q->>'leaseId' THEN
    hints := hints || free_lease(w.scope, w.scope || 'workflow:lease:' || w.id);
  END IF;
  RETURN json_build_object('kind', 'revoked', 'workflow', w.id, 'revokedAtMs', wall_ms(), 'hints', to_json(hints));
END $$;

-- request: scope, id.
CREATE FUNCTION workflow_remove(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  w workflow := lock_workflow(in_scope, q->>'id');
  held record;
BEGIN
  IF w.number IS NULL THEN RETURN '"absent"'; END IF;
  SELECT * INTO held FROM keep_holder(in_scope, q->>'id');
  IF held.holder IS NOT NULL THEN RETURN '"held"'; END IF;
  PERFORM take_out_of_lanes(w, unresolved_actions(w.number), 'nothing');
  DELETE FROM action WHERE workflow = w.number;
  DELETE FROM taken WHERE workflow = w.number;
  DELETE FROM result WHERE workflow = w.number;
  DELETE FROM history WHERE workflow = w.number;
  PERFORM delete_runs(w.number);
  DELETE FROM workflow WHERE number = w.number;
  RETURN '"removed"';
END $$;

-- ---- Steps of a processor ----

CREATE FUNCTION reserve_first(w workflow, x lane, a action, consumer text, claim_us bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE minted bigint := give_out(x, consumer, claim_us);
BEGIN
  INSERT INTO taken AS t VALUES (w.number, a.target, a.epoch, a.id)
  ON CONFLICT (workflow, target) DO UPDATE SET epoch = greatest(t.epoch, excluded.epoch), action = excluded.action;
  RETURN json_build_object('kind', 'reserved', 'workflow', w.id, 'action', action_json(a), 'fence', minted, 'tries', x.tries + 1);
END $$;

CREATE FUNCTION wrong_lease(workflow_id text, action_id text, received text, expected text) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_build_object('kind', 'lease', 'workflow', workflow_id, 'id', action_id, 'received', received, 'expected', expected) $$;

-- request: scope, target, consumer, most, claim (ms).
CREATE FUNCTION workflow_take(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  s bigint;
  claim_us bigint := ((q->>'claim')::float8 * 1000)::bigint;
  x lane;
  w workflow;
  a action;
  lanes lane[];
  replies json[] := '{}';
BEGIN
  IF NOT may_have_lanes(in_scope, 'action:' || (q->>'target')) THEN RETURN '[]'; END IF;
  s := lock_stream(in_scope, 'action:' || (q->>'target'));
  lanes := lanes_in_turn(s, (q->>'most')::int);
  -- Workflows that change are locked in the order of their numbers, before any is changed.
  PERFORM FROM workflow y WHERE y.number IN (
    SELECT v.number FROM unnest(lanes) AS l JOIN workflow v ON v.scope = in_scope AND v.id = l.lane
    JOIN action b ON b.workflow = v.number AND b.id = first_json(l)::json #>> '{}' WHERE b.lease_id IS DISTINCT FROM v.lease_id)
  ORDER BY y.number FOR UPDATE;
  FOREACH x IN ARRAY lanes LOOP
    SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = x.lane;
    a := first_action(w.number, x);
    IF w.number IS NULL OR a.id IS NULL THEN
      PERFORM put_aside(x, first_json(x), '"no action of a workflow"');
      PERFORM advance_lane(x);
    ELSIF a.lease_id = w.lease_id THEN
      replies := replies || reserve_first(w, x, a, q->>'consumer', claim_us);
    ELSE
      -- The action's tenure has ended. The next tenure emits it again when it begins.
      PERFORM advance_lane(x);
      w := park_action(w, a.id);
      PERFORM save_workflow(w);
      replies := replies || wrong_lease(w.id, a.id, a.lease_id, w.lease_id);
    END IF;
  END LOOP;
  RETURN to_json(replies);
END $$;

-- request: scope, target, workflow, id, leaseId, epoch, consumer, claim (ms), strict.
CREATE FUNCTION workflow_reserve(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  s bigint := lock_stream(in_scope, 'action:' || (q->>'target'));
  ref_epoch bigint := q->>'epoch';
  w workflow;
  r result;
  last taken;
  a action;
  f action;
  x lane;
  is_turn boolean;
  applied bigint;
  claim_us bigint := ((q->>'claim')::float8 * 1000)::bigint;
  refuse text := '{"kind":"%s","workflow":%s,"id":%s,"epoch":%s,"current":%s}';
BEGIN
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = q->>'workflow';
  IF w.number IS NULL OR w.lease_id IS DISTINCT FROM q->>'leaseId' THEN
    RETURN wrong_lease(q->>'workflow', q->>'id', q->>'leaseId', w.lease_id);
  END IF;
  r := find_result(w.number, q->>'id');
  IF r.position IS NOT NULL THEN RETURN json_build_object('kind', 'replay', 'result', result_json(r)); END IF;
  IF ref_epoch >= w.epoch THEN RETURN format(refuse, 'future', q->'workflow', q->'id', ref_epoch, w.epoch); END IF;
  SELECT * INTO last FROM taken WHERE workflow = w.number AND target = q->>'target';
  SELECT * INTO a FROM action WHERE workflow = w.number AND id = q->>'id';
  IF a.target IS DISTINCT FROM q->>'target' OR a.epoch <> ref_epoch THEN
    RETURN format(refuse, 'stale', q->'workflow', q->'id', ref_epoch, coalesce(last.epoch, w.epoch));
  END IF;
  SELECT * INTO x FROM lane WHERE stream = s AND lane = w.id;
  f := first_action(w.number, x);
  is_turn := coalesce(f.id = a.id, false);
  IF is_turn AND x.fence > 0 AND x.due > clock_us() THEN RETURN format(refuse, 'stale', q->'workflow', q->'id', ref_epoch, ref_epoch); END IF;
  IF (q->>'strict')::boolean THEN
    SELECT min(epoch) INTO applied FROM action WHERE workflow = w.number AND target = q->>'target';
    IF applied < ref_epoch THEN RETURN format(refuse, 'future', q->'workflow', q->'id', ref_epoch, applied); END IF;
  END IF;
  -- A parked action is not in its lane. It is emitted again, with another epoch.
  IF NOT is_turn THEN RETURN format(refuse, 'future', q->'workflow', q->'id', ref_epoch, coalesce(f.epoch, w.epoch)); END IF;
  IF ref_epoch <= last.epoch AND last.action <> q->>'id' THEN
    RETURN format(refuse, 'stale', q->'workflow', q->'id', ref_epoch, last.epoch);
  END IF;
  IF claim_us = 0 THEN
    RETURN json_build_object('kind', 'reserved', 'workflow', w.id, 'action', action_json(a), 'fence', 0, 'tries', x.tries + 1);
  END IF;
  RETURN reserve_first(w, x, a, q->>'consumer', claim_us);
END $$;

-- request: scope, target, settlements: [{workflow, fence, outcome, json, after, reason}]. Returns [replies, hints].
CREATE FUNCTION workflow_settle(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  on_target text := q->>'target';
  s bigint := lock_stream(in_scope, 'action:' || on_target);
  o record;
  x lane;
  w workflow;
  a action;
  hints json[] := '{}';
  replies boolean[] := array_fill(false, ARRAY[json_array_length(q->'settlements')]);
BEGIN
  PERFORM FROM workflow WHERE scope = in_scope AND id IN (SELECT e->>'workflow' FROM json_array_elements(q->'settlements') AS e)
  ORDER BY number FOR UPDATE;
  FOR o IN SELECT n::int AS n, e->>'workflow' AS workflow, (e->>'fence')::bigint AS fence, e->>'outcome' AS outcome, e->>'json' AS json,
      (e->>'after')::float8 AS after, e->>'reason' AS reason, e->>'error' AS error
    FROM json_array_elements(q->'settlements') WITH ORDINALITY AS t(e, n) ORDER BY n
  LOOP
    SELECT * INTO x FROM lane WHERE stream = s AND lane = o.workflow AND fence = o.fence AND fence > 0;
    CONTINUE WHEN NOT FOUND;
    SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = o.workflow;
    CONTINUE WHEN NOT FOUND;
    a := first_action(w.number, x);
    CONTINUE WHEN a.id IS NULL;
    replies[o.n] := true;
    IF o.outcome = 'retry' THEN
      UPDATE lane SET due = clock_us() + (o.after * 1000)::bigint, fence = 0, consumer = NULL WHERE stream = s AND lane = o.workflow;
      IF o.error IS NOT NULL THEN
        w := add_history(w, json_build_object('kind', 'retried', 'actionId', a.id, 'target', on_target, 'tries', x.tries,
          'error', o.error::json)::text);
        PERFORM save_workflow(w);
      END IF;
      CONTINUE;
    END IF;
    w := resolve_action(w, a);
    w.last_result := w.last_result + 1;
    INSERT INTO result VALUES (w.number, w.last_result, a.id, on_target, a.epoch, o.outcome, o.json, wall_ms(), true, true);
    w.unread := w.unread + 1;
    DELETE FROM result WHERE workflow = w.number AND position = w.last_result - 1000 AND NOT unread;
    IF o.outcome = 'dead' THEN PERFORM put_aside(x, action_json(a)::text, o.reason); END IF;
    PERFORM advance_lane(x);
    w := add_history(w, CASE WHEN o.error IS NULL
      THEN json_build_object('kind', 'settled', 'actionId', a.id, 'target', on_target, 'outcome', o.outcome)
      ELSE json_build_object('kind', 'settled', 'actionId', a.id, 'target', on_target, 'outcome', o.outcome,
        'tries', x.tries, 'error', o.error::json) END::text);
    PERFORM save_workflow(w);
    hints := hints || json_build_array(w.scope || w.inbox, w.id);
  END LOOP;
  RETURN json_build_array(to_json(replies), to_json(hints));
END $$;

-- request: scope, target, dead. Returns null or [workflow, hints].
CREATE FUNCTION workflow_revive(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
  s bigint := lock_stream(in_scope, 'action:' || (q->>'target'));
  d dead;
  w workflow;
  j json;
BEGIN
  SELECT * INTO d FROM dead WHERE number = (q->>'dead')::bigint AND stream = s FOR UPDATE;
  IF NOT FOUND THEN RETURN 'null'; END IF;
  SELECT * INTO w FROM workflow WHERE scope = in_scope AND id = d.lane FOR UPDATE;
  IF NOT FOUND THEN RETURN 'null'; END IF;
  j := d.json;
  INSERT INTO action VALUES (w.number, j->>'id', j->>'target', (j->>'epoch')::bigint, j->>'leaseId', (j->>'priority')::int,
    j->>'body', true) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN 'null'; END IF;
  w.unresolved := w.unresolved + 1;
  w.parked := w.parked + 1;
  DELETE FROM dead WHERE number = d.number;
  UPDATE result SET known = false WHERE workflow = w.number AND action = j->>'id' AND known;
  w := add_history(w, json_build_object('kind', 'revived', 'actionId', j->>'id', 'target', q->>'target')::text);
  PERFORM save_workflow(w);
  RETURN json_build_array(w.id, json_build_array(json_build_array(w.scope || w.inbox, w.id)));
END $$;

-- ---- Reading ----

CREATE FUNCTION workflow_read(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  in_scope text := q->>'scope';
BEGIN
  RETURN coalesce((SELECT json_agg(CASE WHEN w.number IS NOT NULL THEN snapshot_json(w) END ORDER BY n)
    FROM json_array_elements_text(q->'ids') WITH ORDINALITY AS t(id, n)
    LEFT JOIN workflow w ON w.scope = in_scope AND w.id = t.id), '[]');
END $$;

-- request: scope, id, after, most, or action: then the result of that action, or none.
CREATE FUNCTION workflow_results(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  w bigint := (SELECT number FROM workflow WHERE scope = q->>'scope' AND id = q->>'id');
BEGIN
  IF q->>'action' IS NOT NULL THEN
    RETURN coalesce((SELECT json_agg(result_json(r)) FROM result r WHERE r.workflow = w AND r.action = q->>'action' AND r.known), '[]');
  END IF;
  RETURN coalesce((SELECT json_agg(result_json(page.r) ORDER BY (page.r).position) FROM (
    SELECT r FROM result r WHERE r.workflow = w AND r.unread AND r.position > (q->>'after')::bigint
    ORDER BY r.position LIMIT (q->>'most')::int + 1) page), '[]');
END $$;

-- Returns [[position, at, epoch, leaseId, what]].
CREATE FUNCTION workflow_history(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  RETURN coalesce((SELECT json_agg(json_build_array(position::text, at, epoch, lease_id, what) ORDER BY position) FROM (
    SELECT h.* FROM history h WHERE h.workflow = (SELECT number FROM workflow WHERE scope = q->>'scope' AND id = q->>'id')
      AND h.position > (q->>'after')::bigint ORDER BY h.position LIMIT (q->>'most')::int + 1) page), '[]');
END $$;

CREATE FUNCTION workflow_list(request text) RETURNS text LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  RETURN coalesce((SELECT json_agg(id ORDER BY id) FROM (
    SELECT id FROM workflow WHERE scope = q->>'scope' AND id > (q->>'after') ORDER BY id LIMIT (q->>'most')::int + 1) page), '[]');
END $$;
