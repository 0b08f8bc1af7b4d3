-- member/list: all members in the set, with their heartbeats. A member without one is removed from
-- the set.
-- KEYS     [1] the set of members
-- ARGV     [1] what heartbeats' names begin with
-- Returns  {id, value, remaining ms} of each; '' for a value larger than Holdfast writes
local found, gone = {}, {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local value = redis.pcall('GET', ARGV[1] .. id)
  if type(value) == 'string' then
    found[#found + 1] = {id, #value > 65536 and '' or value, redis.call('PTTL', ARGV[1] .. id)}
  else
    gone[#gone + 1] = id
  end
end
-- One by one: the number of arguments of a call is limited.
for _, id in ipairs(gone) do redis.call('SREM', KEYS[1], id) end
return found
