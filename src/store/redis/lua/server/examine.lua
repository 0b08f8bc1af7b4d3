-- server/examine: compares servers with the store's marker and says since when each may have
-- forgotten grants.
-- KEYS     [1] the store's marker
-- ARGV     [1] an era of the caller's making, [2] the era the caller is in, [3] the loss that it
--          has noticed, '' for none, [4] the origin and [5] the count of examinations it remembers,
--          '' and 0 for none, [6] to [8] its bounds of the keyspaces lease, poll and workflow in
--          ms, '' for an observer, [9] '1' if it may make the marker, '' if not, [10] the run id it
--          remembers, '' for none or on a Cluster, then per server (several on a Cluster): what its
--          fields in the marker begin with, run id, replication id, ms its process has been up
-- Returns  {'UNUSED'} if there is no marker, or none with bounds, and the caller may not make it
--          (nothing was done), {'BOUNDS', {ms, ms, ms}} if the store has other bounds (nothing was
--          done), else {origin, count of examinations, per server {era, ms since it may have
--          forgotten, why a new era began or '', names of its witness, and of the one before that
--          is still to be removed, or ''}}
-- Needs    lib/fences
local micros, micros_text = clock()
local now = math.floor(micros / 1000)
local origin, remembered = redis.call('HGET', KEYS[1], 'origin'), ARGV[4]
-- The origin is when the marker was first made. A client that took an emptied store for a new one
-- has made another one than the caller remembers: a younger one, or, if the server's clock was set
-- back, any other in the same server process. The caller puts back its own, and its bounds. The
-- marker keeps which origins were replaced, so that each emptying is found once.
local is_first = not origin and remembered == ''
if is_first and ARGV[9] == '' then return {'UNUSED'} end
local is_emptied = remembered ~= '' and not origin
if remembered ~= '' and origin and origin ~= remembered and not redis.call('HGET', KEYS[1], 'replaced:' .. remembered) then
  is_emptied = ARGV[10] == ARGV[12] or tonumber(origin) > tonumber(remembered)
end

-- Nothing is written where nothing is new: a Redis that is out of memory can still be examined.
local function keep(field, value)
  if value ~= '' and redis.call('HGET', KEYS[1], field) ~= value then redis.call('HSET', KEYS[1], field, value) end
end

local bounds = redis.call('HMGET', KEYS[1], 'maxttl:lease', 'maxttl:poll', 'maxttl:workflow')
for i = 1, 3 do
  -- A process without bounds has put back a lost marker. A client that may not make the marker may
  -- not complete it either.
  if not bounds[i] and ARGV[5 + i] ~= '' and ARGV[9] == '' then return {'UNUSED'} end
  local is_other = bounds[i] and bounds[i] ~= ARGV[5 + i] and ARGV[5 + i] ~= ''
  if is_other and not is_emptied then return {'BOUNDS', bounds} end
end
for i, name in ipairs({'lease', 'poll', 'workflow'}) do keep('maxttl:' .. name, ARGV[5 + i]) end
if is_first then origin = micros_text
elseif is_emptied then
  if origin then keep('replaced:' .. origin, '1') end
  origin = remembered
end
keep('origin', origin)
-- A count lower than the caller remembers shows older data. A new era raises it above what any
-- client remembers.
local looks, step = tonumber(redis.call('HGET', KEYS[1], 'looks')) or 0, 1
local is_older = looks < tonumber(ARGV[5])

local function judge(own, run, replication, up)
  local known = redis.call('HMGET', KEYS[1], own .. 'era', own .. 'run', own .. 'replication', own .. 'since', own .. 'witness',
    own .. 'former')
  local era, since, why, witness, former = known[1], tonumber(known[4]), '', known[5] or '', known[6] or ''
  if is_first then why, since = 'first use', now - tonumber(up)
  elseif is_emptied then
    why, since = 'the marker is gone: flushed, or restarted without its data', now
  elseif known[2] ~= run then
    why, since = 'another server process answers', now
  elseif known[3] ~= replication then
    why, since = 'the replication history has changed', now
  elseif is_older then
    why, since = 'an earlier state of its data is back', now
  elseif ARGV[3] ~= '' and era == ARGV[2] then why, since = ARGV[3], now end
  if why ~= '' then
    era, step = ARGV[1], 1000000
    if witness ~= '' then
      redis.call('HSET', KEYS[1], own .. 'former', witness)
      redis.call('HDEL', KEYS[1], own .. 'witness')
      witness, former = '', witness
    end
  end
  -- A clock that was set back would make the quarantine last as long as it was ahead: it begins
  -- again instead.
  if since > now then since = now end
  if why ~= '' or since ~= tonumber(known[4]) then
    redis.call('HSET', KEYS[1], own .. 'era', era, own .. 'run', run, own .. 'replication', replication, own .. 'since', since)
  end
  return {era, now - since, why, witness, former}
end

local verdicts = {}
for i = 11, #ARGV, 4 do verdicts[#verdicts + 1] = judge(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
local looked = math.max(looks, tonumber(ARGV[5])) + step
if type(redis.pcall('HSET', KEYS[1], 'looks', looked)) == 'number' then looks = looked end
return {origin, looks, verdicts}
