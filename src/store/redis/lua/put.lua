-- put: writes a record, unless it has seen a higher fence than the write carries.
-- KEYS     [1] record
-- ARGV     [1] value as JSON, [2] fence, '' for none
-- Returns  {1, revision} | {0, the fence seen}
local seen = redis.call('HGET', KEYS[1], 'fence')
if ARGV[2] ~= '' then
  if seen and tonumber(ARGV[2]) < tonumber(seen) then return {0, tonumber(seen)} end
  redis.call('HSET', KEYS[1], 'fence', ARGV[2])
end
redis.call('HSET', KEYS[1], 'value', ARGV[1])
return {1, redis.call('HINCRBY', KEYS[1], 'revision', 1)}
