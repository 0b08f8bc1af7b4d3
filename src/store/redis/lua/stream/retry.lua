-- stream/retry: postpones entries, which are given out again later.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] stream, then per entry: lane, fence, ms
-- Returns  per entry: 1 | 0 if the fence does not hold it any more
-- Needs    lib/claims
local stream, replies, now = stream_at(ARGV[2]), {}, clock()
for i = 3, #ARGV, 3 do
  local tries = held(stream, ARGV[i], ARGV[i + 1])
  if tries then postpone(stream, ARGV[i], tries, now + ARGV[i + 2] * 1000) end
  replies[#replies + 1] = tries and 1 or 0
end
return replies
