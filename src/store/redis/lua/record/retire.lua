-- record/retire: enters in a collection's index that records are gone, unless it was told of them
-- since they were read. For a Cluster, where the index is told before a record is written: a record
-- that was entered just now may not be written yet.
-- KEYS     [1] index
-- ARGV     [1] how many removals the index remembers, [2] the version the caller knows, [3] for how
--          many ms a record may be on its way, then the ids
-- Returns  the ids that the index now has as removed
-- Needs    lib/record-index
local changes, retired = {}, {}
local latest = math.min(tonumber(ARGV[2]), clock() - tonumber(ARGV[3]) * 1000)
for i = 4, #ARGV do
  local version = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]))
  if version and version <= latest then
    changes[#changes + 1] = {true, ARGV[i]}
    retired[#retired + 1] = ARGV[i]
  end
end
if #changes > 0 then announce(KEYS[1], changes, tonumber(ARGV[1])) end
return retired
