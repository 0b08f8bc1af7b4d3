-- lease/release: ends each tenure that the store names by holder and fence, and wakes the next in
-- line. A late release never ends a newer tenure, not even the same holder's.
-- KEYS     per tenure: lease; on a Cluster its fence record behind it, so that a moving slot
--          answers for both
-- ARGV     per tenure: holder, fence
-- Returns  per lease that was not released: {index, holder or false, fence}, where another
--          program's value counts as absent; per lease that was released and woke a waiter: {index}
-- Needs    lib/plain-releases, lib/fences, lib/wake
local told = {}
for i = first, #ARGV / 2 do
  local lease, holder, fence = KEYS[i], ARGV[i * 2 - 1], ARGV[i * 2]
  local record = fence_of(lease)
  local found = redis.call('MGET', lease, record)
  local current, recorded = found[1], found[2]
  local waited = recorded == fence .. '+'
  if current ~= holder or (recorded and recorded ~= fence and not waited) then
    told[#told + 1] = {i, current, tonumber(digits(recorded)) or 0}
  else
    redis.call('DEL', lease)
    -- A tenure longer than its fence record leaves a fresh one, for a next clock that may lag
    -- behind this one.
    if not recorded then redis.pcall('SET', record, fence, 'NX', 'PX', FENCE_RECORD_MS) end
    if (waited or not recorded) and wake(lease, 1) > 0 then told[#told + 1] = {i} end
    if waited and redis.pcall('EXISTS', line_of(lease)) == 0 then redis.pcall('SET', record, fence, 'KEEPTTL') end
  end
end
return told
