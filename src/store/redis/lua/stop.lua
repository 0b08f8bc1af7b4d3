-- stop: takes a client off a session, or all of them; where none is left, it is to stop.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] id, [3] client, [4] '1' for all of them, [5] status of one that ends by this,
--          [6] the tenant whose it has to be, if it has to be anybody's
-- Returns  {1, facts} | {2, facts} if its state is another now | {0, name} if something else lies there | false if there is none
-- Before:  hub.lua, intent.lua
local id, client = ARGV[2], 'c:' .. ARGV[3]
local facts, foreign = facts_of(id, client)
if foreign then return {0, foreign} end
if not facts or (ARGV[6] and facts[1] ~= ARGV[6]) then return false end
local state = facts[2]
if state == 'STOPPING' or state == 'ENDED' then return {1, facts} end

local at = session_at(id)
if ARGV[4] == '1' then
  local fields = {}
  for _, field in ipairs(redis.call('HKEYS', at)) do
    if string.sub(field, 1, 2) == 'c:' then fields[#fields + 1] = field end
    -- Lua takes no list of thousands.
    if #fields == 1000 then
      redis.call('HDEL', at, unpack(fields))
      fields = {}
    end
  end
  if #fields > 0 then redis.call('HDEL', at, unpack(fields)) end
  facts[6] = 0
elseif facts[9] then
  redis.call('HDEL', at, client)
  facts[6] = facts[6] - 1
end
redis.call('HSET', at, 'clients', facts[6])
if tonumber(facts[6]) > 0 then return {1, facts} end
if state == 'NEW' then change(id, facts, 'ENDED', ARGV[5]) else change(id, facts, 'STOPPING', facts[5]) end
return {2, facts}
