-- lease/read: the holder, fence and remaining time of leases.
-- KEYS     per lease: lease
-- ARGV     none
-- Returns  per lease: {holder or false, fence, remaining ms, '!' if the record marks a forced
--          revocation} or {error text}
-- Needs    lib/siblings, lib/fences
local replies = {}
for _, lease in ipairs(KEYS) do
  local current, recorded = redis.pcall('GET', lease), redis.pcall('GET', fence_of(lease))
  if type(current) == 'table' or type(recorded) == 'table' then
    replies[#replies + 1] = {(type(current) == 'table' and current or recorded).err}
  else
    local mark = recorded and string.match(recorded, '!') or ''
    replies[#replies + 1] = {current, tonumber(digits(recorded)) or 0, redis.call('PTTL', lease), mark}
  end
end
return replies
