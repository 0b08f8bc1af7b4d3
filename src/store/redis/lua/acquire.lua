-- acquire: grants each free key and mints its fence in the same step.
-- KEYS     [1] the store's marker, or on a Cluster the lease once more; then per request: lease; on a Cluster the
--          fence record behind it, so that a slot on the move answers for both
-- ARGV     [1] the era this client has examined ('' = none: quarantine off, or a Cluster), [2] ttl ms, [3] inbox of the caller,
--          then per request: holder, and '' or "presented-fence fence-floor waited-ms" (-1 = does not wait)
-- Returns  'ERA' if the marker has changed (nothing was done), else per request:
--          fence | {holder, fence, remaining ms} where busy | {error text}
-- Before:  siblings.lua, mint.lua
if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'era') ~= ARGV[1] then return 'ERA' end
local ttl, inbox, now, now_text = ARGV[2], ARGV[3], clock()

-- A lease without a fence is no grant: if the fence can not be minted, the key is given up again.
local function grant(lease, record, holder, floor, condition)
  local set = redis.pcall('SET', lease, holder, condition, 'PX', ttl)
  if not set then return nil end
  if set.err then return {set.err} end
  local fence, problem = mint(record, now, now_text, floor)
  if fence then return fence end
  if condition == 'NX' then redis.call('DEL', lease) end
  return {problem}
end

local function refresh(lease, record, holder, presented, floor)
  local recorded = redis.pcall('GET', record)
  if type(recorded) == 'table' then return {recorded.err} end
  if presented == 0 or tonumber(digits(recorded)) ~= presented then return grant(lease, record, holder, floor, 'XX') end
  redis.call('PEXPIRE', lease, ttl)
  return presented
end

local function busy(lease, record, holder, waited)
  local remaining, recorded = redis.call('PTTL', lease), redis.pcall('GET', record)
  if type(recorded) == 'table' then return {recorded.err} end
  if waited >= 0 then
    local line = line_of(lease)
    redis.pcall('ZADD', line, 'NX', string.format('%.0f', now - waited * 1000), inbox)
    redis.pcall('PEXPIRE', line, math.max(remaining, tonumber(ttl)) * 2)
    if recorded and string.sub(recorded, -1) ~= '+' then redis.pcall('SET', record, recorded .. '+', 'KEEPTTL') end
  end
  return {holder, tonumber(digits(recorded)) or 0, remaining}
end

local replies = {}
for i = 4, #ARGV, 2 do
  local lease, holder, presented, floor, waited = KEYS[i / 2], ARGV[i], 0, 0, -1
  local record = fence_of(lease)
  if ARGV[i + 1] ~= '' then
    presented, floor, waited = string.match(ARGV[i + 1], '^(%S+) (%S+) (%S+)$')
    presented, floor, waited = tonumber(presented), tonumber(floor), tonumber(waited)
  end
  local reply = grant(lease, record, holder, floor, 'NX')
  if not reply then
    local current = redis.pcall('GET', lease)
    if type(current) == 'table' then reply = {current.err}
    elseif current == holder then reply = refresh(lease, record, holder, presented, floor)
    else reply = busy(lease, record, current, waited) end
  end
  replies[#replies + 1] = reply
end
return replies
