-- stream/extend: extends the claims of entries.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] stream, [3] ms of the claim, from now, then per
--          entry: lane, fence
-- Returns  per entry: 1 | 0 if the fence does not hold it any more
-- Needs    lib/claims
local stream, replies = stream_at(ARGV[2]), {}
local until_us = string.format('%.0f', clock() + ARGV[3] * 1000)
for i = 4, #ARGV, 2 do
  local is_held = held(stream, ARGV[i], ARGV[i + 1])
  if is_held then redis.call('ZADD', stream.due, until_us, ARGV[i]) end
  replies[#replies + 1] = is_held and 1 or 0
end
return replies
