-- stream/bury: entries are put aside.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] stream, then per entry: lane, fence, reason
-- Returns  per entry: 1 | 0 if it is not in these hands any more
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
tell(stream)
return replies
