-- intent/prune: forgets sessions that ended before a time, those first that ended first; with each, its entry in the stream of starts, if
--        no worker has taken that.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] the time in ms, [3] how many at most
-- Returns  {how many it looked at, how many it has forgotten}
-- Needs    lib/lanes, lib/session
local stream = stream_at(START_STREAM)

-- A session that ended while it was NEW may still be there.
local function drop_start(id)
  local state = redis.call('HGET', stream.lanes, id)
  if state then withdraw(stream, id, state) end
  redis.call('DEL', lane_of(stream, id))
end

local ids, count = redis.call('ZRANGEBYSCORE', INTENT .. 'ended', '-inf', '(' .. ARGV[2], 'LIMIT', 0, ARGV[3]), 0
for _, id in ipairs(ids) do
  local facts = facts_of(id)
  redis.call('ZREM', INTENT .. 'ended', id)
  -- What is lost is dropped from the other indexes by who meets it there, and what is not ours is left alone.
  if facts and facts[2] == 'ENDED' then
    redis.call('ZREM', INTENT .. 'all', id)
    redis.call('ZREM', INTENT .. 'all:' .. facts[1], id)
    redis.call('DEL', session_at(id))
    drop_start(id)
    count = count + 1
  end
end
return {#ids, count}
