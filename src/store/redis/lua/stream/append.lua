-- stream/append: adds entries to a stream, each at the end of its lane.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] stream, then per entry: lane, priority, value as
--          JSON
-- Returns  1
-- Needs    lib/lanes
local stream = stream_at(ARGV[2])
redis.call('ZADD', WORK .. 'stream:all', 0, ARGV[2])
for i = 3, #ARGV, 3 do push(stream, ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2]) end
hint(ARGV[1] .. 'stream:' .. ARGV[2], ARGV[2])
return 1
