-- lease/acquire: grants each free key and mints its fence in the same step.
-- KEYS     [1] the store's marker, or on a Cluster the lease again; then per request: lease; on a
--          Cluster the fence record behind it, so that a moving slot answers for both
-- ARGV     [1] the era this client has examined ('' = none: quarantine off); on a Cluster with the
--          name of the server's witness behind it, [2] ttl ms, [3] inbox of the caller, then per
--          request: holder, and '' or "presented-fence fence-floor waited-ms" (-1 = does not wait)
-- Returns  'ERA' if the marker, or the witness, has changed (nothing was done), else per request:
--          fence | {holder, fence, remaining ms} where busy | {error text}
-- Needs    lib/plain-grants, lib/siblings, lib/fences, lib/era
if is_other_era(ARGV[1]) then return 'ERA' end
local ttl, inbox = ARGV[2], ARGV[3]
if not now then now, now_text = clock() end

-- A lease without a fence is no grant: if the fence cannot be minted, the key is deleted again.
local function grant(lease, record, holder, floor)
  local set = redis.pcall('SET', lease, holder, 'NX', 'PX', ttl)
  if not set or set.err then return set and {set.err} end
  local fence, problem = mint(record, now, now_text, floor)
  if fence then return fence end
  redis.call('DEL', lease)
  return {problem}
end

-- The holder has the lease already. It is never shortened: this request may arrive after a later
-- one with a longer TTL.
local function refresh(lease, record, presented, floor)
  local recorded = redis.pcall('GET', record)
  if type(recorded) == 'table' then return {recorded.err} end
  local fence, problem = presented, nil
  if presented == 0 or tonumber(digits(recorded)) ~= presented then fence, problem = mint(record, now, now_text, floor) end
  if fence and redis.call('PTTL', lease) < tonumber(ttl) then redis.call('PEXPIRE', lease, ttl) end
  return fence or {problem}
end

local function busy(lease, record, holder, waited)
  local remaining, recorded = redis.call('PTTL', lease), redis.pcall('GET', record)
  if type(recorded) == 'table' then return {recorded.err} end
  if waited >= 0 then
    local line = line_of(lease)
    redis.pcall('ZADD', line, 'NX', string.format('%.0f', now - waited * 1000), inbox)
    redis.pcall('PEXPIRE', line, math.min(math.max(remaining, tonumber(ttl)) * 2, MAX_NUMBER))
    if digits(recorded) and string.sub(recorded, -1) ~= '+' then redis.pcall('SET', record, recorded .. '+', 'KEEPTTL') end
  end
  return {holder, tonumber(digits(recorded)) or 0, remaining}
end

local replies = granted
for i = first, #ARGV, 2 do
  local lease, record, holder, presented, floor, waited = KEYS[i / 2], fence_of(KEYS[i / 2]), ARGV[i], 0, 0, -1
  if ARGV[i + 1] ~= '' then
    presented, floor, waited = string.match(ARGV[i + 1], '^(%S+) (%S+) (%S+)$')
    presented, floor, waited = tonumber(presented), tonumber(floor), tonumber(waited)
  end
  local reply = grant(lease, record, holder, floor)
  if not reply then
    local current = redis.pcall('GET', lease)
    if type(current) == 'table' then reply = {current.err}
    elseif current == holder then reply = refresh(lease, record, presented, floor)
    else reply = busy(lease, record, current, waited) end
  end
  replies[#replies + 1] = reply
end
return replies
