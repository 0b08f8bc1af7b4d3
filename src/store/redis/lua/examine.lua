-- examine: compares the server with the store's marker and says since when it may have forgotten grants.
-- KEYS     [1] the store's marker
-- ARGV     [1] run id, [2] replication id, [3] ms the server process has been up, [4] an era of the caller's making,
--          [5] the era and [6] the origin the caller remembers, '' for none, [7] '1' = a lease was found missing,
--          then what the caller remembers of classes, or uses itself: name, longest ttl ms
-- Returns  {era, origin, ms since the server may have forgotten, why a new era began or '', name, longest ttl ms, …}
-- Before:  mint.lua
local micros, micros_text = clock()
local now = math.floor(micros / 1000)
local known = redis.call('HMGET', KEYS[1], 'era', 'run', 'replication', 'since', 'origin')
local era, since, origin, why = known[1], tonumber(known[4]), known[5], ''
-- The origin is when the marker was first made. One younger than the caller remembers was made by somebody who took an
-- emptied store for a new one; the older is put back, so that each emptying is found once.
if not era or (ARGV[6] ~= '' and tonumber(origin) > tonumber(ARGV[6])) then
  local first = ARGV[6] == ''
  why = first and 'first use' or 'the marker is gone: flushed, or restarted without its data'
  since = first and now - tonumber(ARGV[3]) or now
  origin = first and micros_text or ARGV[6]
elseif known[2] ~= ARGV[1] or known[3] ~= ARGV[2] then
  why = known[2] ~= ARGV[1] and 'another server process answers' or 'the replication history has changed'
  since = now
elseif ARGV[7] == '1' and era == ARGV[5] then
  why, since = 'a lease vanished under its holder', now
end
if why ~= '' then
  era = ARGV[4]
  redis.call('HSET', KEYS[1], 'era', era, 'run', ARGV[1], 'replication', ARGV[2], 'since', since, 'origin', origin)
end
for i = 8, #ARGV, 2 do
  local longest = tonumber(redis.call('HGET', KEYS[1], 'ttl:' .. ARGV[i])) or 0
  if tonumber(ARGV[i + 1]) > longest then redis.call('HSET', KEYS[1], 'ttl:' .. ARGV[i], ARGV[i + 1]) end
end
local reply = {era, origin, now - since, why}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local name = string.match(fields[i], '^ttl:(.+)$')
  if name then
    reply[#reply + 1] = name
    reply[#reply + 1] = fields[i + 1]
  end
end
return reply
