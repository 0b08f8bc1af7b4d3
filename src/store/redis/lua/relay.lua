-- relay: not a verb, but what stands before the script that begins a tenure.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines relay
-- Before:  hub.lua, lanes.lua, workflow.lua, parking.lua

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
