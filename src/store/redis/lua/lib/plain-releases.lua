-- lib/plain-releases: the first tenures of lease/release that the store has as they are named, and
-- for whose keys nobody waits. They are ended before Redis makes the functions of the script, as in
-- lib/plain-grants. The first tenure that needs more ends this.
-- Defines  first: the index of the next tenure
local first = 1
for i = 1, #ARGV / 2 do
  local lease = KEYS[i]
  local record = string.find(lease, '{', 1, true) and 'fence:' .. lease or 'fence:{' .. lease .. '}'
  local found = redis.call('MGET', lease, record)
  if found[1] ~= ARGV[i * 2 - 1] or found[2] ~= ARGV[i * 2] then break end
  redis.call('DEL', lease)
  first = i + 1
end
if first > #ARGV / 2 then return {} end
