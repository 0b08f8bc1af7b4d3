-- examine: compares the server with the store's marker and says since when it may have forgotten grants.
-- KEYS     [1] the store's marker
-- ARGV     [1] run id, [2] replication id, [3] ms the server process has been up, [4] an era of the caller's making,
--          [5] the era the caller remembers, '' for none, [6] '1' = grants were found missing, start a new era,
--          then what the caller remembers of classes, or uses itself: name, longest ttl ms
-- Returns  {era, ms since the server may have forgotten, why a new era began or '', name, longest ttl ms, …}
-- Before:  mint.lua
local now = math.floor(micros() / 1000)
local known = redis.call('HMGET', KEYS[1], 'era', 'run', 'replication', 'since')
local era, since, why = known[1], tonumber(known[4]), ''
if not era then
  why = ARGV[5] ~= '' and 'the marker is gone: flushed, or restarted without its data' or 'first use'
  since = ARGV[5] ~= '' and now or now - tonumber(ARGV[3])
elseif known[2] ~= ARGV[1] or known[3] ~= ARGV[2] then
  why = known[2] ~= ARGV[1] and 'another server process answers' or 'the replication history has changed'
  since = now
elseif ARGV[6] == '1' and era == ARGV[5] then
  why, since = 'a lease vanished under its holder', now
end
if why ~= '' then
  era = ARGV[4]
  redis.call('HSET', KEYS[1], 'era', era, 'run', ARGV[1], 'replication', ARGV[2], 'since', since)
end
for i = 7, #ARGV, 2 do
  local longest = tonumber(redis.call('HGET', KEYS[1], 'ttl:' .. ARGV[i])) or 0
  if tonumber(ARGV[i + 1]) > longest then redis.call('HSET', KEYS[1], 'ttl:' .. ARGV[i], ARGV[i + 1]) end
end
local reply = {era, now - since, why}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local name = string.match(fields[i], '^ttl:(.+)$')
  if name then
    reply[#reply + 1] = name
    reply[#reply + 1] = fields[i + 1]
  end
end
return reply
