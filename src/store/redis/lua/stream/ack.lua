-- stream/ack: entries are done.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] stream, then per entry: lane, fence
-- Returns  per entry: 1 | 0 if it is not in these hands any more
-- Needs    lib/claims
local stream, replies = stream_at(ARGV[2]), {}
for i = 3, #ARGV, 2 do
  local is_held = held(stream, ARGV[i], ARGV[i + 1])
  if is_held then advance(stream, ARGV[i]) end
  replies[#replies + 1] = is_held and 1 or 0
end
tell(stream)
return replies
