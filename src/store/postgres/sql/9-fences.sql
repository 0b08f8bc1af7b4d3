-- The trigger form of `guard`, for code that cannot be changed: see fences.ts.

-- Refuses a statement on a fenced table unless its transaction presents a lease in the setting
-- `holdfast.lease`: `key:fence`, one on each line. `guard` sets it. The fence is what follows the
-- last colon. The key is that of a lease, or a whole key of the store (`workflow:lease:…`).
-- The trigger's argument is JSON. scope: what the store puts before the key of a lease. key: the
-- key that is required; isPrefix: any key that begins so.
-- Replaced, never dropped: the triggers of fenced tables depend on it.
CREATE OR REPLACE FUNCTION fence_write() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  q json := TG_ARGV[0];
  -- The setting is empty, and no longer absent, once a transaction that set it has ended.
  presented text := coalesce(current_setting('holdfast.lease', true), '');
  one text;
  given text;
  fence_text text;
  name text;
  passed int := 0;
BEGIN
  FOREACH one IN ARRAY string_to_array(presented, E'\n') LOOP
    fence_text := substring(one FROM ':([0-9]{1,16})$');
    CONTINUE WHEN fence_text IS NULL;
    given := left(one, -1 - length(fence_text));
    SELECT key INTO name FROM lease WHERE key IN (q->>'scope' || given, given)
    ORDER BY fence = fence_text::bigint DESC, length(key) DESC LIMIT 1;
    name := coalesce(name, q->>'scope' || given);
    CONTINUE WHEN NOT CASE WHEN (q->>'isPrefix')::boolean THEN starts_with(name, q->>'key') ELSE name = q->>'key' END;
    -- Locks the row of the lease as `guard` does: a takeover waits until this transaction ends.
    PERFORM hold_fence(name, fence_text::bigint);
    passed := passed + 1;
  END LOOP;
  IF passed > 0 THEN RETURN NULL; END IF;
  RAISE EXCEPTION USING ERRCODE = 'HF003', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
    MESSAGE = format('FENCE_MISSING %s on %I.%I needs a lease', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME),
    DETAIL = format('Required: %s%s. Presented: %s.', q->>'key', CASE WHEN (q->>'isPrefix')::boolean THEN '*' END,
      CASE presented WHEN '' THEN 'none' ELSE presented END),
    HINT = 'Call guard(tx) first in the transaction, or run: SET LOCAL holdfast.lease = ''key:fence''.';
END $$;
