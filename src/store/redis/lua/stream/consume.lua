-- stream/consume: gives entries to a consumer, the head of each lane that is due.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] stream, [3] consumer, [4] the limit, [5] ms of the
--          claim
-- Returns  per entry: {lane, fence, how often it was given out, value as JSON}
-- Needs    lib/claims
local stream, now, lanes, replies = stream_at(ARGV[2]), clock(), {}, {}
for _, turn in ipairs(due_lanes(stream, tonumber(ARGV[4]), now)) do
  local entry = redis.call('LINDEX', lane_of(stream, turn[1]), 0)
  -- The lane may have been deleted by another program.
  if entry then lanes[#lanes + 1] = {turn[1], turn[2], entry} else advance(stream, turn[1]) end
end
local fence = give(stream, lanes, ARGV[3], tonumber(ARGV[5]), now)
for i, lane in ipairs(lanes) do
  replies[i] = {lane[1], fence + i - 1, lane[2] + 1, string.match(lane[3], '^%d+ (.*)$')}
end
return replies
