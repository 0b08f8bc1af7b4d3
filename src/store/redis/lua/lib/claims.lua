-- lib/claims: entries of a stream that consumers have claimed.
-- Needs    lib/lanes, lib/fences
-- Defines  tries_of, due_lanes, give, held, postpone
local HIGHEST_PRIORITY = 10

-- How often the head of a lane was given out.
local function tries_of(state)
  return tonumber(state and (string.match(state, '^h %d+ (%d+)') or string.match(state, '^p (%d+)'))) or 0
end

-- The lanes whose head is due, each with how often it was given out. Takes those on the bus off it.
local function due_lanes(stream, most, now)
  local found = {}
  local due = redis.call('ZRANGEBYSCORE', stream.due, '-inf', string.format('%.0f', now), 'LIMIT', 0, most)
  local states = #due > 0 and redis.call('HMGET', stream.lanes, unpack(due))
  for i, lane in ipairs(due) do found[i] = {lane, tries_of(states[i])} end
  for n = 0, HIGHEST_PRIORITY - 1 do
    if #found == most then break end
    local bus, ids = bus_of(stream, HIGHEST_PRIORITY - n), {}
    for i, entry in ipairs(redis.call('XRANGE', bus, '-', '+', 'COUNT', most - #found)) do
      ids[i] = entry[1]
      found[#found + 1] = {entry[2][2], 0}
    end
    if #ids > 0 then redis.call('XDEL', bus, unpack(ids)) end
  end
  return found
end

-- Gives the head of each lane to a consumer. The fences are consecutive; returns the first.
local function give(stream, lanes, consumer, claim_ms, now)
  if #lanes == 0 then return 0 end
  local first = math.max((tonumber(redis.call('HGET', KEYS[1], 'fence')) or 0) + 1, now)
  local until_us, states, due = string.format('%.0f', now + claim_ms * 1000), {}, {}
  for i, lane in ipairs(lanes) do
    local n = 2 * i
    states[n - 1], states[n] = lane[1], string.format('h %.0f %.0f ', first + i - 1, lane[2] + 1) .. consumer
    due[n - 1], due[n] = until_us, lane[1]
  end
  redis.call('HSET', KEYS[1], 'fence', string.format('%.0f', first + #lanes - 1))
  redis.call('HSET', stream.lanes, unpack(states))
  redis.call('ZADD', stream.due, unpack(due))
  return first
end

-- How often the head that this fence holds was given out; nil if the fence does not hold it any
-- more.
local function held(stream, lane, fence)
  local found, tries = string.match(redis.call('HGET', stream.lanes, lane) or '', '^h (%d+) (%d+)')
  return found == fence and tonumber(tries) or nil
end

local function postpone(stream, lane, tries, until_us)
  redis.call('HSET', stream.lanes, lane, 'p ' .. tries)
  redis.call('ZADD', stream.due, string.format('%.0f', until_us), lane)
end
