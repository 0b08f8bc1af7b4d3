-- lib/lane-order: not a verb, but what stands before the script that begins a tenure.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines in_hands_first and relay
-- Needs    lib/parking

-- Sorts actions that are in the order of their epochs: the one that somebody has in hands goes before the others of its target, as it does
-- in its lane. Otherwise a revived action would have a lower epoch, and be given out after it.
local function in_hands_first(id, actions)
  local rank, held = {}, {}
  for _, action in ipairs(actions) do
    local _, _, target = parts_of(action[3])
    if not rank[target] then
      local stream = action_stream(target)
      local first = is_in_hands(redis.call('HGET', stream.lanes, id)) and redis.call('LINDEX', lane_of(stream, id), 0)
      rank[target], held[target] = action[1], first and string.match(first, '^%d+ (.*)$')
    end
    -- Half an epoch before the first of its target.
    if held[target] == action[2] then action[1] = rank[target] - 0.5 end
  end
  table.sort(actions, function(a, b) return a[1] < b[1] end)
end

-- Puts the entries of a lane into a new order. The one that somebody has in hands stays the first; a first that stays the first keeps
-- its place on the bus, or its rest.
local function relay_lane(stream, lane, entries)
  local key, state = lane_of(stream, lane), redis.call('HGET', stream.lanes, lane)
  local old = redis.call('LINDEX', key, 0)
  local kept = is_in_hands(state) and old
  local first = kept or entries[1]
  redis.call('DEL', key)
  if kept then redis.call('RPUSH', key, kept) end
  for _, entry in ipairs(entries) do
    if entry ~= kept then redis.call('RPUSH', key, entry) end
  end
  if state and first ~= old then withdraw(stream, lane, state) end
  if not state or first ~= old then offer(stream, lane, first) end
end

-- Puts all unresolved actions of a workflow, in this order, into the streams of their targets.
local function relay(id, actions)
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
    relay_lane(stream, id, entries[target])
    tell(stream)
  end
end
