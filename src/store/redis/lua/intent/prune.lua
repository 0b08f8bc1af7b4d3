-- intent/prune: removes sessions that ended before a time, the earliest first, with their entries
-- in the streams of starts.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] the time in ms, [3] the limit
-- Returns  {how many it read, how many it removed}
-- Needs    lib/lanes, lib/session

-- A session that ended while it was NEW may still have a start entry.
local function drop_start(id, kind)
  local stream = stream_at(start_stream(kind))
  local state = redis.call('HGET', stream.lanes, id)
  if state then withdraw(stream, id, state) end
  redis.call('DEL', lane_of(stream, id))
end

local ids, count = redis.call('ZRANGEBYSCORE', INTENT .. 'ended', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3]), 0
for _, id in ipairs(ids) do
  local facts = facts_of(id)
  redis.call('ZREM', INTENT .. 'ended', id)
  -- Readers of the other indexes drop lost sessions. Values of other programs are left alone.
  if facts and facts[2] == 'ENDED' then
    redis.call('ZREM', INTENT .. 'all', id)
    redis.call('ZREM', INTENT .. 'all:' .. facts[1], id)
    redis.call('ZREM', INTENT .. 'of:all:' .. facts[9], id)
    redis.call('ZREM', INTENT .. 'label:' .. facts[9] .. ':' .. facts[10], id)
    redis.call('DEL', session_at(id))
    drop_start(id, facts[9])
    count = count + 1
  end
end
return {#ids, count}
