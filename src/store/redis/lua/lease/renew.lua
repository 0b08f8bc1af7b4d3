-- lease/renew: lengthens each lease whose holder the store names. It never creates one, never
-- shortens one and never changes a fence. So a renewal that arrives late, after the same holder
-- took the key again with a longer TTL, does no harm.
-- KEYS     per tenure: lease; with fences on a Cluster the fence record behind it
-- ARGV     [1] ttl ms, [2] '1' = keep the fence records, too, then per tenure: holder
-- Returns  per lease that was not renewed: {index, holder or false} | {index, error text, 'error'}
-- Needs    lib/siblings, lib/fences
local ttl, failures = tonumber(ARGV[1]), {}

local function keep(record)
  local recorded = redis.pcall('GET', record)
  if type(recorded) == 'string' and digits(recorded) then redis.call('PEXPIRE', record, FENCE_RECORD_MS) end
end

for i = 1, #ARGV - 2 do
  local lease = KEYS[i]
  local current = redis.pcall('GET', lease)
  if current == ARGV[i + 2] then
    if redis.call('PTTL', lease) < ttl then redis.call('PEXPIRE', lease, ARGV[1]) end
    if ARGV[2] == '1' then keep(fence_of(lease)) end
  elseif type(current) == 'table' then
    failures[#failures + 1] = {i, current.err, 'error'}
  else
    failures[#failures + 1] = {i, current}
  end
end
return failures
