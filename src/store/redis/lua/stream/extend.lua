-- stream/extend: who has entries in hands says that it is still at it.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] stream, [3] ms it has from now, then per entry: lane, fence
-- Returns  per entry: 1 | 0 if it is not in these hands any more
-- Needs    lib/claims
local stream, replies = stream_at(ARGV[2]), {}
local until_us = string.format('%.0f', clock() + ARGV[3] * 1000)
for i = 4, #ARGV, 2 do
  local is_held = held(stream, ARGV[i], ARGV[i + 1])
  if is_held then redis.call('ZADD', stream.due, until_us, ARGV[i]) end
  replies[#replies + 1] = is_held and 1 or 0
end
return replies
