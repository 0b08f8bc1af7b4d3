-- lib/parking: unresolved actions that leave their streams.
-- Needs    lib/lanes, lib/workflow
-- Defines  action_stream, is_claimed, sort_by_epoch, reemit, clear_lanes, park

local function action_stream(target) return stream_at('action:' .. target) end
local function is_claimed(state) return state and string.sub(state, 1, 1) == 'h' end

-- Actions, {epoch, id, record} each, from a list of ids and records.
local function sort_by_epoch(list)
  local actions = {}
  for i = 1, #list, 2 do actions[#actions + 1] = {parts_of(list[i + 1]), list[i], list[i + 1]} end
  table.sort(actions, function(a, b) return a[1] < b[1] end)
  return actions
end

-- Gives actions new epochs, from this one on, and a tenure. Returns the time in ms.
local function reemit(id, actions, epoch, lease_id)
  local now_ms
  for i, action in ipairs(actions) do
    local body = string.match(action[3], '^%d+\n.-\n(.*)$')
    action[1] = epoch + i - 1
    action[3] = action[1] .. '\n' .. lease_id .. '\n' .. body
    redis.call('HSET', of('actions', id), action[2], action[3])
    local _, _, target = parts_of(action[3])
    now_ms = add_history(id, action[1] + 1, lease_id, 'reemitted', action[2], target)
  end
  return now_ms
end

-- Removes all actions of a workflow from their streams.
local function clear_lanes(id)
  for _, target in ipairs(redis.call('HKEYS', of('targets', id))) do
    local stream = action_stream(target)
    local state = redis.call('HGET', stream.lanes, id)
    if state then withdraw(stream, id, state) end
    redis.call('DEL', lane_of(stream, id))
  end
end

-- Removes all but claimed actions, and parks them.
local function park(id)
  for _, target in ipairs(redis.call('HKEYS', of('targets', id))) do
    local stream = action_stream(target)
    local key, state = lane_of(stream, id), redis.call('HGET', stream.lanes, id)
    local entries, is_kept = redis.call('LRANGE', key, 0, -1), is_claimed(state)
    for i = is_kept and 2 or 1, #entries do
      redis.call('SADD', of('parked', id), string.match(entries[i], '^%d+ (.*)$'))
    end
    redis.call('DEL', key)
    if is_kept then redis.call('RPUSH', key, entries[1]) elseif state then withdraw(stream, id, state) end
  end
end
