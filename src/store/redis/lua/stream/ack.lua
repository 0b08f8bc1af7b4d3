-- stream/ack: ends entries that are done.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] stream, then per entry: lane, fence
-- Returns  per entry: 1 | 0 if the fence does not hold it any more
-- Needs    lib/claims
local stream, replies = stream_at(ARGV[2]), {}
for i = 3, #ARGV, 2 do
  local is_held = held(stream, ARGV[i], ARGV[i + 1])
  if is_held then advance(stream, ARGV[i]) end
  replies[#replies + 1] = is_held and 1 or 0
end
hint_stream(stream)
return replies
