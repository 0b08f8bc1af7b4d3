-- intent/stop: removes a client from a session, or all of them. A session without clients is to
-- stop.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] id, [3] client, [4] '1' for all of them, [5] status
--          of one that ends by this, [6] the tenant of the session, absent for any
-- Returns  {1, facts} | {2, facts} if its state is another now | {0, name} if another program's
--          value is there | false if there is none
-- Needs    lib/session
local id, client = ARGV[2], 'c:' .. ARGV[3]
local facts, foreign = facts_of(id, client)
if foreign then return {0, foreign} end
if not facts or (ARGV[6] and facts[1] ~= ARGV[6]) then return false end
local state = facts[2]
if state == 'STOPPING' or state == 'ENDED' then return {1, facts} end

local at = session_at(id)
if ARGV[4] == '1' then
  -- There may be thousands of clients, so the hash is written again without them.
  local fields, kept = {'kind', 'label', 'priority', 'keys'}, {}
  for n = 1, tonumber(redis.call('HGET', at, 'keys')) or 0 do fields[n + 4] = 'key:' .. n end
  for i, value in ipairs(redis.call('HMGET', at, unpack(fields))) do
    if value then
      kept[#kept + 1] = fields[i]
      kept[#kept + 1] = value
    end
  end
  redis.call('DEL', at)
  redis.call('HSET', at, 'tenant', facts[1], 'state', state, 'revision', facts[3], 'body', facts[4], 'status', facts[5],
    'created', facts[7], 'changed', facts[8], unpack(kept))
  facts[6] = 0
elseif facts[11] then
  redis.call('HDEL', at, client)
  facts[6] = facts[6] - 1
end
redis.call('HSET', at, 'clients', facts[6])
if tonumber(facts[6]) > 0 then return {1, facts} end
if state == 'NEW' then change(id, facts, 'ENDED', ARGV[5]) else change(id, facts, 'STOPPING', facts[5]) end
return {2, facts}
