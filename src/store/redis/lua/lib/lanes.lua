-- lib/lanes: not a verb, but what stands before every script about streams.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines stream_at, lane_of, offer, push, withdraw, advance and tell
-- Needs    lib/work-keyspace

-- A lane is a list of entries: each a priority, a space, and what it is about. While there are any, the stream knows in what state
-- its lane is: 'w <priority> <id>', its first waits on the bus; 'h <fence> <tries> <consumer>', somebody has it in hands;
-- 'p <tries>', it rests. For the last two `due` has when they end, in µs. The bus is a Redis Stream for each priority.
local function stream_at(name)
  local at = HUB .. 'stream:'
  return {name = name, lanes = at .. 'lanes:' .. name, due = at .. 'due:' .. name, dead = at .. 'dead:' .. name}
end

-- No name has braces.
local function lane_of(stream, lane) return HUB .. 'stream:lane:{' .. stream.name .. '}:' .. lane end
local function bus_of(stream, priority) return HUB .. 'stream:bus:' .. priority .. ':' .. stream.name end

-- The first of a lane has its turn.
local function offer(stream, lane, entry)
  local priority = string.match(entry, '^%d+')
  local id = redis.call('XADD', bus_of(stream, priority), '*', 'l', lane)
  redis.call('HSET', stream.lanes, lane, 'w ' .. priority .. ' ' .. id)
  stream.has_more = true
end

local function push(stream, lane, entry)
  if redis.call('RPUSH', lane_of(stream, lane), entry) == 1 then offer(stream, lane, entry) end
end

-- Nobody waits for the first of a lane any more, nor has it in hands.
local function withdraw(stream, lane, state)
  local priority, id = string.match(state, '^w (%d+) (.+)$')
  if id then
    redis.call('XDEL', bus_of(stream, priority), id)
  else
    redis.call('ZREM', stream.due, lane)
  end
  redis.call('HDEL', stream.lanes, lane)
end

-- The first of a lane is done with: the next has its turn. Gives what it was.
local function advance(stream, lane)
  local key = lane_of(stream, lane)
  local entry, following = redis.call('LPOP', key), redis.call('LINDEX', key, 0)
  redis.call('ZREM', stream.due, lane)
  if following then offer(stream, lane, following) else redis.call('HDEL', stream.lanes, lane) end
  return entry
end

local function tell(stream)
  if stream.has_more then hint(ARGV[1] .. 'stream:' .. stream.name, stream.name) end
end
