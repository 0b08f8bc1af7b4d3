-- intent/start: finds the session that one of the keys leads to, the first key first; else creates
-- one and its start entry.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] id of a new one, [3] tenant, [4] client, [5] body,
--          [6] status, [7] priority, [8] its entry in the stream as JSON, [9] kind, [10] label,
-- then
--          the keys
-- Returns  {1, created ms} | {2, facts, id} if there was one | {3, facts, id} if that has too many
--          clients | {0, name} if another program's value is there
-- Needs    lib/lanes, lib/session

-- Lets another key lead to a session.
local function add_key(id, key)
  local at = session_at(id)
  local count = (tonumber(redis.call('HGET', at, 'keys')) or 0) + 1
  redis.call('HSET', at, 'keys', count, 'key:' .. count, key)
  redis.call('HSET', INTENT .. 'keys', key, id)
end

-- Puts a session into all indexes.
local function list(id, place, tenant, kind, label)
  local indexes = {
    'all', 'open', 'all:' .. tenant, 'open:' .. tenant,
    'of:all:' .. kind, 'of:open:' .. kind, 'label:' .. kind .. ':' .. label,
  }
  for _, index in ipairs(indexes) do redis.call('ZADD', INTENT .. index, 'NX', place, id) end
end

-- A session that no index names is neither listed nor recovered.
local function list_again(id, facts)
  if redis.call('ZSCORE', INTENT .. 'open', id) then return end
  list(id, string.format('%.0f', -1000 * facts[7]), facts[1], facts[9], facts[10])
end

local id, tenant, client, keys = ARGV[2], ARGV[3], 'c:' .. ARGV[4], {}
local kind, label = ARGV[9], ARGV[10]
for i = 11, #ARGV do keys[i - 10] = ARGV[i] end
local led = redis.call('HMGET', INTENT .. 'keys', unpack(keys))

for _, found in ipairs(led) do
  local facts, foreign
  if found then facts, foreign = facts_of(found, client) end
  if foreign then return {0, foreign} end
  -- A session that is lost or has ended does not count.
  if facts and facts[2] ~= 'ENDED' then
    if not facts[11] then
      local count = facts[6] + 1
      if count > CLIENTS_MOST then return {3, facts, found} end
      redis.call('HSET', session_at(found), client, '', 'clients', count)
      facts[6] = count
    end
    for n = 1, #keys do
      if led[n] ~= found then add_key(found, keys[n]) end
    end
    list_again(found, facts)
    return {2, facts, found}
  end
end

-- In this order: if one write fails because of another program's value, the earlier ones name a
-- session that does not exist, which their readers find out.
local now_ms, now = now_of()
local latest = redis.call('ZRANGE', INTENT .. 'all', 0, 0, 'WITHSCORES')[2]
local place = string.format('%.0f', math.min((tonumber(latest) or 0) - 1, -now))
local stream = stream_at(start_stream(kind))
push(stream, id, ARGV[7] .. ' ' .. ARGV[8])
redis.call('ZADD', WORK .. 'stream:all', 0, stream.name)
list(id, place, tenant, kind, label)
redis.call('HSET', session_at(id), 'tenant', tenant, 'kind', kind, 'label', label, 'state', 'NEW', 'revision', 1,
  'body', ARGV[5], 'status', ARGV[6], 'clients', 1, 'created', now_ms, 'changed', now_ms, 'priority', ARGV[7], client, '', 'keys', 1, 'key:1', keys[1])
redis.call('HSET', INTENT .. 'keys', keys[1], id)
for n = 2, #keys do add_key(id, keys[n]) end
hint_stream(stream)
return {1, now_ms}
