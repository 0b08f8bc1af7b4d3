-- stream/bury: moves entries to the dead ones of the stream.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] stream, then per entry: lane, fence, reason
-- Returns  per entry: 1 | 0 if the fence does not hold it any more
-- Needs    lib/claims
local stream, replies = stream_at(ARGV[2]), {}
for i = 3, #ARGV, 3 do
  local lane, tries = ARGV[i], held(stream, ARGV[i], ARGV[i + 1])
  if tries then
    local value = string.match(advance(stream, lane), '^%d+ (.*)$')
    redis.call('XADD', stream.dead, '*', 'l', lane, 't', tries, 'r', ARGV[i + 2], 'v', value)
  end
  replies[#replies + 1] = tries and 1 or 0
end
hint_stream(stream)
return replies
