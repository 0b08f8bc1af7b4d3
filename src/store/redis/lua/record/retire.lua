-- record/retire: tells a collection's index that records are gone, where it has heard nothing of them since they were looked
-- for. On a Cluster, where who writes a record tells the index first: one that was told of just now may be on its way.
-- KEYS     [1] index
-- ARGV     [1] how many removals the index remembers, [2] the version the caller knows, [3] for how many ms a record may be
--          on its way, then the ids
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
