-- changes: which records of a collection have changed since a version, the earliest change first.
-- KEYS     [1] index
-- ARGV     [1] the version, 0 for all records, [2] how many at most, [3] how many removals the index remembers
-- Returns  {version to ask with next, 1 if there is more, 1 if removals since then are forgotten, {written id, …}, {removed id, …}}
-- Before:  siblings.lua, mint.lua, index.lua
local index, gone, since, most = KEYS[1], sibling(KEYS[1], 'removed'), tonumber(ARGV[1]), tonumber(ARGV[2])
local found = {}
local function collect(key, kind)
  local rows = redis.call('ZRANGEBYSCORE', key, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
  for i = 1, #rows, 2 do found[#found + 1] = {tonumber(rows[i + 1]), kind, rows[i]} end
end
collect(index, 1)
-- Who asks for everything has nothing that could have been removed.
if since > 0 then collect(gone, 2) end
table.sort(found, function(a, b) return a[1] < b[1] end)

local ids, version = {{}, {}}, since
for i = 1, math.min(#found, most) do
  version = found[i][1]
  local list = ids[found[i][2]]
  list[#list + 1] = found[i][3]
end
local oldest = redis.call('ZRANGE', gone, 0, 0, 'WITHSCORES')[2]
local is_forgotten = since > 0 and redis.call('ZCARD', gone) >= tonumber(ARGV[3]) and since < tonumber(oldest)
local is_unknown = since > top(index) or (since > 0 and since < born(index))
return {string.format('%.0f', version), #found > most and 1 or 0, (is_forgotten or is_unknown) and 1 or 0, ids[1], ids[2]}
