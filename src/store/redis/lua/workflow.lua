-- workflow: not a verb, but what stands before every script about workflows.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines UNRESOLVED_MOST, of, parts_of, note, standing, mark_read and snapshot
-- Before:  hub.lua

-- As workflow-store.ts has them.
local UNRESOLVED_MOST, HISTORY_KEPT = 1000, 1000

local function of(what, id) return HUB .. 'workflow:' .. what .. ':' .. id end

-- An unresolved action is a text of lines: epoch, lease id, target, priority, body. No name has a line break, and the body is never
-- looked at.
local function parts_of(record)
  local epoch, lease_id, target, priority = string.match(record, '^(%d+)\n(.-)\n(.-)\n(%d+)\n')
  return tonumber(epoch), lease_id, target, priority
end

-- Adds to the history of a workflow; gives the time in ms.
local function note(id, epoch, lease_id, kind, a, b, c)
  local place = redis.call('XADD', of('history', id), 'MAXLEN', HISTORY_KEPT, '*',
    'e', epoch, 'l', lease_id or '', 'k', kind, 'a', a, 'b', b or '', 'c', c or '')
  return string.match(place, '^%d+')
end

-- The epoch of a workflow whose orchestrator may take steps; or nil and why it may not.
local function standing(id, lease_id)
  local holder = redis.call('GET', of('lease', id))
  if holder ~= lease_id then return nil, {2, holder} end
  local facts = redis.call('HMGET', of('facts', id), 'lease', 'epoch')
  if facts[1] ~= lease_id then return nil, {2, facts[1]} end
  return tonumber(facts[2])
end

-- Forgets results that have been read: so many positions, from this argument on. Gives the place of what stands behind them.
local function mark_read(id, count, from)
  local positions = {}
  for i = from, from + count - 1 do positions[#positions + 1] = ARGV[i] end
  if count > 0 then redis.call('XDEL', of('unread', id), unpack(positions)) end
  return from + count
end

local function snapshot(id)
  local facts = redis.call('HMGET', of('facts', id), 'lease', 'epoch', 'state', 'created', 'changed')
  if not facts[2] then return false end
  return {facts, redis.call('HLEN', of('actions', id)), redis.call('SCARD', of('parked', id)), redis.call('XLEN', of('unread', id))}
end
