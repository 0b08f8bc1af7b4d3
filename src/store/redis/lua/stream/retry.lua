-- stream/retry: entries are to be given out again, in a while.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] stream, then per entry: lane, fence, ms
-- Returns  per entry: 1 | 0 if it is not in these hands any more
-- Needs    lib/claims
local stream, replies, now = stream_at(ARGV[2]), {}, clock()
for i = 3, #ARGV, 3 do
  local tries = held(stream, ARGV[i], ARGV[i + 1])
  if tries then rest(stream, ARGV[i], tries, now + ARGV[i + 2] * 1000) end
  replies[#replies + 1] = tries and 1 or 0
end
return replies
