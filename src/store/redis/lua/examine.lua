-- examine: compares servers with the store's marker and says since when each may have forgotten grants.
-- KEYS     [1] the store's marker
-- ARGV     [1] an era of the caller's making, [2] the era and [3] the origin the caller remembers, '' for none,
--          [4] '1' = a lease was found missing, [5] how many servers follow (more than one on a Cluster), then per server:
--          what its fields in the marker begin with, run id, replication id, ms its process has been up;
--          then what the caller remembers of classes, or uses itself: name, longest ttl ms
-- Returns  {origin, per server {era, ms since it may have forgotten, why a new era began or ''}, {name, longest ttl ms, …}}
-- Before:  mint.lua
local micros, micros_text = clock()
local now = math.floor(micros / 1000)
local origin, remembered = redis.call('HGET', KEYS[1], 'origin'), ARGV[3]
-- The origin is when the marker was first made. One younger than the caller remembers was made by somebody who took an
-- emptied store for a new one; the older is put back, so that each emptying is found once.
local is_first = not origin and remembered == ''
local is_emptied = remembered ~= '' and (not origin or tonumber(origin) > tonumber(remembered))
if is_first then origin = micros_text elseif is_emptied then origin = remembered end
-- Nothing is written where nothing is new: a Redis that is out of memory can still be examined.
if is_first or is_emptied then redis.call('HSET', KEYS[1], 'origin', origin) end

local function judge(own, run, replication, up)
  local known = redis.call('HMGET', KEYS[1], own .. 'era', own .. 'run', own .. 'replication', own .. 'since')
  local era, since, why = known[1], tonumber(known[4]), ''
  if is_first then
    why, since = 'first use', now - tonumber(up)
  elseif is_emptied then
    why, since = 'the marker is gone: flushed, or restarted without its data', now
  elseif known[2] ~= run then
    why, since = 'another server process answers', now
  elseif known[3] ~= replication then
    why, since = 'the replication history has changed', now
  elseif ARGV[4] == '1' and era == ARGV[2] then
    why, since = 'a lease vanished under its holder', now
  end
  if why ~= '' then
    era = ARGV[1]
    redis.call('HSET', KEYS[1], own .. 'era', era, own .. 'run', run, own .. 'replication', replication, own .. 'since', since)
  end
  return {era, now - since, why}
end

local classes, verdicts = 6 + 4 * ARGV[5], {}
for i = 6, classes - 1, 4 do verdicts[#verdicts + 1] = judge(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
for i = classes, #ARGV, 2 do
  local longest = tonumber(redis.call('HGET', KEYS[1], 'ttl:' .. ARGV[i])) or 0
  if tonumber(ARGV[i + 1]) > longest then redis.call('HSET', KEYS[1], 'ttl:' .. ARGV[i], ARGV[i + 1]) end
end
local fields, ttls = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #fields, 2 do
  local name = string.match(fields[i], '^ttl:(.+)$')
  if name then
    ttls[#ttls + 1] = name
    ttls[#ttls + 1] = fields[i + 1]
  end
end
return {origin, verdicts, ttls}
