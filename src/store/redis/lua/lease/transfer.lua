-- lease/transfer: names successors as holders for a short claim window, each with a new fence, and
-- notifies them. If one never claims, the window expires and any client may acquire.
-- KEYS     per handover: lease; on a Cluster its fence record behind it, so that a moving slot
--          answers for both
-- ARGV     [1] window ms, [2] the era that the giver has examined ('' = quarantine is off), [3] for
--          how many ms that is remembered, then per handover: holder, fence, successor, inbox of
--          the successor
-- Returns  per handover: the new fence | {holder or false, fence} where it is not held | {error
--          text}
-- Needs    lib/siblings, lib/fences
local window, era, remembered, now, now_text = ARGV[1], ARGV[2], ARGV[3], clock()

local function transfer(lease, holder, fence, successor, inbox)
  local record = fence_of(lease)
  local current, recorded = redis.pcall('GET', lease), redis.pcall('GET', record)
  if type(current) == 'table' then return {current.err} end
  if type(recorded) == 'table' then return {recorded.err} end
  if current ~= holder or (recorded and digits(recorded) ~= fence) then
    return {current, tonumber(digits(recorded)) or 0}
  end
  local minted, problem = mint(record, now, now_text, tonumber(fence) + 1)
  if not minted then return {problem} end
  redis.call('SET', lease, successor, 'PX', window)
  -- For lease/claim: a lease that is handed over in an era may be claimed in a quarantine of that
  -- era.
  if era ~= '' then
    redis.pcall('HSET', offer_of(lease), era, string.format('%.0f', minted))
    redis.pcall('PEXPIRE', offer_of(lease), remembered)
  end
  -- A hint: where publishing is forbidden, the successor finds the lease in its name when it polls.
  redis.pcall('PUBLISH', inbox, lease)
  return minted
end

local replies = {}
for i = 4, #ARGV, 4 do
  replies[#replies + 1] = transfer(KEYS[i / 4], ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
end
return replies
