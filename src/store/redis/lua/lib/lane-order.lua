-- lib/lane-order: new epochs for unresolved actions, when a tenure begins.
-- Needs    lib/parking
-- Defines  claimed_first, rebuild_lanes

-- Sorts actions that are in the order of their epochs: a claimed action goes before the others of
-- its target, as in its lane. Otherwise a revived action would have a lower epoch, and be given out
-- after it.
local function claimed_first(id, actions)
  local rank, held = {}, {}
  for _, action in ipairs(actions) do
    local _, _, target = parts_of(action[3])
    if not rank[target] then
      local stream = action_stream(target)
      local first = is_claimed(redis.call('HGET', stream.lanes, id)) and redis.call('LINDEX', lane_of(stream, id), 0)
      rank[target], held[target] = action[1], first and string.match(first, '^%d+ (.*)$')
    end
    -- Half an epoch before the first of its target.
    if held[target] == action[2] then action[1] = rank[target] - 0.5 end
  end
  table.sort(actions, function(a, b) return a[1] < b[1] end)
end

-- Puts the entries of a lane into a new order. A claimed head stays the head. A head that stays
-- keeps its place on the bus, or its due time.
local function rebuild_lane(stream, lane, entries)
  local key, state = lane_of(stream, lane), redis.call('HGET', stream.lanes, lane)
  local old = redis.call('LINDEX', key, 0)
  local kept = is_claimed(state) and old
  local first = kept or entries[1]
  redis.call('DEL', key)
  if kept then redis.call('RPUSH', key, kept) end
  for _, entry in ipairs(entries) do
    if entry ~= kept then redis.call('RPUSH', key, entry) end
  end
  if state and first ~= old then withdraw(stream, lane, state) end
  if not state or first ~= old then offer(stream, lane, first) end
end

-- Puts all unresolved actions of a workflow into the streams of their targets, in this order.
local function rebuild_lanes(id, actions)
  local targets, entries = {}, {}
  for _, action in ipairs(actions) do
    local _, _, target, priority = parts_of(action[3])
    if not entries[target] then
      entries[target] = {}
      targets[#targets + 1] = target
    end
    local own = entries[target]
    own[#own + 1] = priority .. ' ' .. action[2]
  end
  for _, target in ipairs(targets) do
    local stream = action_stream(target)
    rebuild_lane(stream, id, entries[target])
    hint_stream(stream)
  end
end
