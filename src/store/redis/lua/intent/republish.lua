-- intent/republish: puts new sessions that the stream of their kind has lost into it again.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, then per session: id, its entry in the stream as JSON
-- Returns  per session: 1 | 0 if it is not new, or not lost
-- Needs    lib/lanes, lib/session
local replies, streams, changed = {}, {}, {}
-- For a session that has lost its own.
local MIDDLE_PRIORITY = 5

-- Whether the head of a lane is offered or due.
local function is_there(stream, lane, state)
  if not state or redis.call('EXISTS', lane_of(stream, lane)) == 0 then return false end
  local priority, entry = string.match(state, '^w (%d+) (.+)$')
  if entry then return #redis.call('XRANGE', bus_of(stream, priority), entry, entry) == 1 end
  return redis.call('ZSCORE', stream.due, lane) and true
end

for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  local facts = facts_of(id, 'priority')
  local is_lost = false
  if facts and facts[2] == 'NEW' then
    local name = start_stream(facts[9])
    local stream = streams[name] or stream_at(name)
    streams[name] = stream
    local state = redis.call('HGET', stream.lanes, id)
    is_lost = not is_there(stream, id, state)
    if is_lost then
      if state then withdraw(stream, id, state) end
      redis.call('DEL', lane_of(stream, id))
      push(stream, id, (tonumber(facts[11]) or MIDDLE_PRIORITY) .. ' ' .. ARGV[i + 1])
      if not stream.is_changed then changed[#changed + 1] = stream end
      stream.is_changed = true
    end
  end
  replies[#replies + 1] = is_lost and 1 or 0
end
for _, stream in ipairs(changed) do
  redis.call('ZADD', WORK .. 'stream:all', 0, stream.name)
  hint_stream(stream)
end
return replies
