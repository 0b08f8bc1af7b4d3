-- lease/reassert: puts back leases that vanished under their holders, where no other holder can
-- have been granted them since.
-- KEYS     [1] the store's marker, or on a Cluster the lease again; then per tenure: lease; on a
--          Cluster the fence record behind it
-- ARGV     [1] '' = only where the fence record is the holder's; else also where it is gone, if
--          this is still the era in which no new grants are made (on a Cluster with the witness, or
--          '*' where there is none), [2] ttl ms, then per tenure: holder, fence
-- Returns  'ERA' if the marker has changed (nothing was done), else per tenure: 1 = put back, 0 =
--          not
-- Needs    lib/siblings, lib/fences, lib/era
if ARGV[1] ~= '*' and is_other_era(ARGV[1]) then return 'ERA' end
local replies = {}
for i = 3, #ARGV, 2 do
  local lease, holder, fence = KEYS[(i + 1) / 2], ARGV[i], ARGV[i + 1]
  local key = fence_of(lease)
  local record, put = redis.pcall('GET', key), 0
  if record == fence or record == fence .. '+' or (not record and ARGV[1] ~= '') then
    local set = redis.pcall('SET', lease, holder, 'NX', 'PX', ARGV[2])
    if set and not set.err then
      put = 1
      if not record then redis.call('SET', key, fence, 'PX', FENCE_RECORD_MS) end
    end
  end
  replies[#replies + 1] = put
end
return replies
