-- lib/session: sessions that an intent started.
-- Needs    lib/work-keyspace
-- Defines  INTENT, CLIENTS_MOST, session_at, start_stream, facts_of, now_of, change

-- As intent-store.ts has them.
local CLIENTS_MOST = 10000
local function start_stream(kind) return 'intent:start:' .. kind end

-- A session is one hash, so that it is never stored in part: its facts; its clients, a field
-- 'c:<client>' each; its keys, as 'key:1' and so on. The hash `keys` has the session of each key.
-- The indexes `all` and `open` (not ended), both for each tenant, both for each kind ('of:all:',
-- 'of:open:'), and one for each label of a kind ('label:<kind>:'), are sorted by creation with
-- scores below 0, so that the latest comes first. `ended` has the time of the end.
local INTENT = WORK .. 'intent:'

local function session_at(id) return INTENT .. 'session:' .. id end

-- The facts of a session, and one more field. Nil if there is none; with its name if another
-- program's value is there.
local function facts_of(id, field)
  local at = session_at(id)
  local facts = redis.pcall('HMGET', at, 'tenant', 'state', 'revision', 'body', 'status', 'clients', 'created', 'changed', 'kind', 'label',
    field or 'state')
  if facts.err then return nil, at end
  if not facts[2] then return nil end
  local is_ours = facts[1] and facts[4] and facts[5] and facts[9] and facts[10]
    and tonumber(facts[3]) and tonumber(facts[6]) and tonumber(facts[7]) and tonumber(facts[8])
  if not is_ours then return nil, at end
  return facts
end

-- The store's wall clock in ms and in µs.
local function now_of()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
end

-- No key leads to a session that has ended. A key that leads to another session by now is kept.
local function close(id, at, tenant, kind, now_ms)
  for n = 1, tonumber(redis.call('HGET', at, 'keys')) or 0 do
    local key = redis.call('HGET', at, 'key:' .. n)
    if key and redis.call('HGET', INTENT .. 'keys', key) == id then redis.call('HDEL', INTENT .. 'keys', key) end
  end
  redis.call('ZREM', INTENT .. 'open', id)
  redis.call('ZREM', INTENT .. 'open:' .. tenant, id)
  redis.call('ZREM', INTENT .. 'of:open:' .. kind, id)
  redis.call('ZADD', INTENT .. 'ended', now_ms, id)
end

-- Changes state and status, in the facts too. A change of state is published.
local function change(id, facts, state, status)
  local at, before, now_ms = session_at(id), facts[2], now_of()
  facts[2], facts[3], facts[5], facts[8] = state, facts[3] + 1, status, now_ms
  if state == 'ENDED' then close(id, at, facts[1], facts[9], now_ms) end
  redis.call('HSET', at, 'state', state, 'revision', facts[3], 'status', status, 'changed', now_ms)
  if state ~= before then hint(ARGV[1] .. 'intent:sessions', id) end
end
