-- lib/lanes: queues of a stream, one per lane, served in turn.
-- Needs    lib/work-keyspace
-- Defines  stream_at, lane_of, bus_of, offer, push, withdraw, advance, hint_stream

-- lane   list of '<priority> <entry>'
-- state  'w <priority> <id>'              its head waits on the bus: a Redis Stream per priority
--        'h <fence> <tries> <consumer>'   its head is claimed; `due` has until when, in µs
--        'p <tries>'                      its head is parked; `due` has until when, in µs
local function stream_at(name)
  local at = WORK .. 'stream:'
  return {name = name, lanes = at .. 'lanes:' .. name, due = at .. 'due:' .. name, dead = at .. 'dead:' .. name}
end

-- Names have no braces.
local function lane_of(stream, lane) return WORK .. 'stream:lane:{' .. stream.name .. '}:' .. lane end
local function bus_of(stream, priority) return WORK .. 'stream:bus:' .. priority .. ':' .. stream.name end

-- Puts the head of a lane on the bus.
local function offer(stream, lane, entry)
  local priority = string.match(entry, '^%d+')
  local id = redis.call('XADD', bus_of(stream, priority), '*', 'l', lane)
  redis.call('HSET', stream.lanes, lane, 'w ' .. priority .. ' ' .. id)
  stream.has_more = true
end

local function push(stream, lane, entry)
  if redis.call('RPUSH', lane_of(stream, lane), entry) == 1 then offer(stream, lane, entry) end
end

-- Takes the head of a lane off the bus, or ends its claim.
local function withdraw(stream, lane, state)
  local priority, id = string.match(state, '^w (%d+) (.+)$')
  if id then
    redis.call('XDEL', bus_of(stream, priority), id)
  else
    redis.call('ZREM', stream.due, lane)
  end
  redis.call('HDEL', stream.lanes, lane)
end

-- Removes the head of a lane and offers the next entry. Returns the removed one.
local function advance(stream, lane)
  local key = lane_of(stream, lane)
  local entry, following = redis.call('LPOP', key), redis.call('LINDEX', key, 0)
  redis.call('ZREM', stream.due, lane)
  if following then offer(stream, lane, following) else redis.call('HDEL', stream.lanes, lane) end
  return entry
end

local function hint_stream(stream)
  if stream.has_more then hint(ARGV[1] .. 'stream:' .. stream.name, stream.name) end
end
