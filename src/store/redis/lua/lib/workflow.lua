-- lib/workflow: what every script about workflows needs.
-- Needs    lib/work-keyspace
-- Defines  UNRESOLVED_MOST, UNREAD_MOST, HISTORY_STATE_MOST, RESULTS_KEPT, of, parts_of,
--          add_history, check_tenure, forget_result, mark_read, count_unread, snapshot

-- As workflow-store.ts has them.
local UNRESOLVED_MOST, UNREAD_MOST, HISTORY_KEPT, HISTORY_STATE_MOST, RESULTS_KEPT = 1000, 10000, 1000, 4096, 1000

local function of(what, id) return WORK .. 'workflow:' .. what .. ':' .. id end

-- An unresolved action is a text of lines: epoch, lease id, target, priority, body. Names have no
-- line breaks, and the body is opaque.
local function parts_of(record)
  local epoch, lease_id, target, priority = string.match(record, '^(%d+)\n(.-)\n(.-)\n(%d+)\n')
  return tonumber(epoch), lease_id, target, priority
end

-- Adds to the history of a workflow. Returns the time in ms.
local function add_history(id, epoch, lease_id, kind, a, b, c, d)
  local place = redis.call('XADD', of('history', id), 'MAXLEN', HISTORY_KEPT, '*',
    'e', epoch, 'l', lease_id or '', 'k', kind, 'a', a or '', 'b', b or '', 'c', c or '', 'd', d or '')
  return string.match(place, '^%d+')
end

-- The epoch of a workflow, if this lease id may take steps; or nil and the reply.
local function check_tenure(id, lease_id)
  local holder = redis.call('GET', of('lease', id))
  if holder ~= lease_id then return nil, {2, holder} end
  local facts = redis.call('HMGET', of('facts', id), 'lease', 'epoch')
  if facts[1] ~= lease_id then return nil, {2, facts[1]} end
  return tonumber(facts[2])
end

-- Forgets a result that is neither unread nor among the last. A revived action may have a later
-- result, which stays.
local function forget_result(id, position, action_id)
  local result = redis.call('HGET', of('results', id), action_id)
  if result and string.match(result, '^%S+') == position then redis.call('HDEL', of('results', id), action_id) end
end

-- Positions are ids of a Redis Stream.
local function is_before(position, other)
  local ms, n = string.match(position, '^(%d+)%-(%d+)$')
  local other_ms, other_n = string.match(other, '^(%d+)%-(%d+)')
  if not ms or not other_ms then return false end
  ms, n, other_ms, other_n = tonumber(ms), tonumber(n), tonumber(other_ms), tonumber(other_n)
  return ms < other_ms or (ms == other_ms and n < other_n)
end

-- Marks results as read: `count` positions, from this argument on. `settled` has the last results,
-- the oldest first. A result before these was kept only until it was read.
local function mark_read(id, count, from)
  if count == 0 then return end
  local unread, oldest, positions = of('unread', id), redis.call('LINDEX', of('settled', id), 0), {}
  for i = from, from + count - 1 do
    local position = ARGV[i]
    positions[#positions + 1] = position
    local entry = oldest and is_before(position, oldest) and redis.call('XRANGE', unread, position, position)[1]
    if entry then forget_result(id, position, entry[2][2]) end
  end
  redis.call('XDEL', unread, unpack(positions))
end

-- How many results are unread, without those that so many positions from this argument on say to be
-- read.
local function count_unread(id, count, from)
  local unread, seen = of('unread', id), {}
  local total = redis.call('XLEN', unread)
  for i = from, from + count - 1 do
    local position = ARGV[i]
    if not seen[position] and redis.call('XRANGE', unread, position, position)[1] then total = total - 1 end
    seen[position] = true
  end
  return total
end

local function snapshot(id)
  local facts = redis.call('HMGET', of('facts', id), 'lease', 'epoch', 'state', 'created', 'changed', 'begun', 'inbox')
  if not facts[2] then return false end
  return {facts, redis.call('HLEN', of('actions', id)), redis.call('SCARD', of('parked', id)), redis.call('XLEN', of('unread', id))}
end
