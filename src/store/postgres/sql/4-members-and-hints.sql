-- request: scope, id, attributes, ttl (ms).
CREATE FUNCTION member_beat(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  INSERT INTO member VALUES (q->>'scope', q->>'id', q->>'attributes', clock_us() + ((q->>'ttl')::float8 * 1000)::bigint)
  ON CONFLICT (scope, id) DO UPDATE SET attributes = excluded.attributes, until = excluded.until;
  RETURN 'null';
END $$;

CREATE FUNCTION member_leave(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE q json := request;
BEGIN
  DELETE FROM member WHERE scope = q->>'scope' AND id = q->>'id';
  RETURN 'null';
END $$;

-- Returns [[id, attributes, left ms]].
CREATE FUNCTION member_list(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  now bigint := clock_us();
BEGIN
  RETURN coalesce((SELECT json_agg(json_build_array(id, attributes, (until - now) / 1000.0))
    FROM member WHERE scope = q->>'scope' AND until > now), '[]');
END $$;

-- Says that a process lives, and which topics it subscribes to; null: no change. Returns whether it
-- counted as alive before, and the hints that it was to get and has not followed: whoever released
-- the key may have died before it sent them. So a lost hint costs a second, not a TTL.
-- request: scope, owner, ttl (ms; 0: it leaves), polls, topics. Returns [wasLive, [[topic, message]]].
CREATE FUNCTION hint_listen(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  ttl bigint := (q->>'ttl')::bigint * 1000;
  wanted text[];
  was_live boolean;
  missed json;
BEGIN
  IF ttl = 0 THEN
    DELETE FROM listener WHERE owner = q->>'owner';
    DELETE FROM message WHERE owner = q->>'owner';
    DELETE FROM process WHERE owner = q->>'owner';
    RETURN '[true, []]';
  END IF;
  was_live := EXISTS (SELECT FROM process WHERE owner = q->>'owner' AND until > clock_us());
  INSERT INTO process VALUES (q->>'owner', clock_us() + ttl, (q->>'polls')::boolean)
  ON CONFLICT (owner) DO UPDATE SET until = excluded.until, polls = excluded.polls;
  IF json_typeof(q->'topics') = 'array' THEN
    SELECT coalesce(array_agg(t), '{}') INTO wanted FROM json_array_elements_text(q->'topics') AS t;
    DELETE FROM listener WHERE owner = q->>'owner' AND topic <> ALL (wanted);
    INSERT INTO listener SELECT t, q->>'owner' FROM unnest(wanted) AS t ORDER BY t ON CONFLICT DO NOTHING;
  END IF;
  WITH late AS (
    DELETE FROM line WHERE woken < clock_us() - 500000 AND inbox IN (SELECT topic FROM listener WHERE owner = q->>'owner')
    RETURNING inbox, key
  )
  SELECT json_agg(json_build_array(inbox, substr(key, length(q->>'scope') + 1))) INTO missed FROM late;
  RETURN json_build_array(was_live, coalesce(missed, '[]'));
END $$;

-- Sends hints: the only function that notifies. It runs in a transaction of its own, because NOTIFY
-- takes a lock that all commits of the server share. request: owner, hints: [[channel, topic, payload]].
CREATE FUNCTION hint_send(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  sender text := q->>'owner';
  now bigint := clock_us();
BEGIN
  PERFORM pg_notify(e->>0, e->>2) FROM json_array_elements(q->'hints') AS e
  WHERE EXISTS (SELECT FROM listener l JOIN process p ON p.owner = l.owner
    WHERE l.topic = e->>1 AND p.until > now AND p.owner <> sender AND NOT p.polls);
  INSERT INTO message (owner, topic, payload, at)
  SELECT p.owner, e->>1, e->>2, now FROM json_array_elements(q->'hints') WITH ORDINALITY AS t(e, n)
  JOIN listener l ON l.topic = e->>1 JOIN process p ON p.owner = l.owner
  WHERE p.until > now AND p.owner <> sender AND p.polls ORDER BY n;
  RETURN 'null';
END $$;

-- Takes the hints for a process that polls. request: owner. Returns [[topic, payload]].
CREATE FUNCTION hint_take(request text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := request;
  taken json;
BEGIN
  WITH mine AS (
    DELETE FROM message WHERE id IN (SELECT id FROM message WHERE owner = q->>'owner' ORDER BY id LIMIT 1000)
    RETURNING id, topic, payload
  )
  SELECT json_agg(json_build_array(topic, payload) ORDER BY id) INTO taken FROM mine;
  RETURN coalesce(taken, '[]');
END $$;
