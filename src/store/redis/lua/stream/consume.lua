-- stream/consume: gives entries out, the first of each lane whose turn it is.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] stream, [3] consumer, [4] how many at most, [5] ms it has for them
-- Returns  per entry: {lane, fence, the how many-th time, value as JSON}
-- Needs    lib/claims
local stream, now, lanes, replies = stream_at(ARGV[2]), clock(), {}, {}
for _, turn in ipairs(turns(stream, tonumber(ARGV[4]), now)) do
  local entry = redis.call('LINDEX', lane_of(stream, turn[1]), 0)
  -- A lane that somebody has deleted is in nobody's way.
  if entry then lanes[#lanes + 1] = {turn[1], turn[2], entry} else advance(stream, turn[1]) end
end
local fence = give(stream, lanes, ARGV[3], tonumber(ARGV[5]), now)
for i, lane in ipairs(lanes) do
  replies[i] = {lane[1], fence + i - 1, lane[2] + 1, string.match(lane[3], '^%d+ (.*)$')}
end
return replies
