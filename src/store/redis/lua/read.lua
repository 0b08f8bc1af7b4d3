-- read: who holds what, without changing anything.
-- KEYS     per lease: lease, fence record
-- ARGV     none
-- Returns  per lease: {holder or false, fence, remaining ms, '!' if the record marks a forced revocation}
--          or {error text}
-- Before:  mint.lua
local replies = {}
for i = 1, #KEYS, 2 do
  local current, recorded = redis.pcall('GET', KEYS[i]), redis.pcall('GET', KEYS[i + 1])
  if type(current) == 'table' or type(recorded) == 'table' then
    replies[#replies + 1] = {(type(current) == 'table' and current or recorded).err}
  else
    local mark = recorded and string.match(recorded, '!$') or ''
    replies[#replies + 1] = {current, tonumber(digits(recorded)) or 0, redis.call('PTTL', KEYS[i]), mark}
  end
end
return replies
