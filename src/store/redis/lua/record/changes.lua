-- record/changes: which records of a collection have changed since a version, the earliest change
-- first.
-- KEYS     [1] index
-- ARGV     [1] the version, 0 for all records, [2] the version at which a listing from 0 began,
--          else 0, [3] the limit
-- Returns  {version to ask with next, began to ask with next, 1 if there is more, 1 if the caller
--          has to begin again, {written id, …}, {removed id, …}}
-- Needs    lib/record-index
local index, gone, since, most = KEYS[1], sibling(KEYS[1], 'removed'), tonumber(ARGV[1]), tonumber(ARGV[3])
local newest = top(index)
local began = since == 0 and newest or tonumber(ARGV[2])
-- A listing shows nothing that was removed before it began.
local known = math.max(since, began)

local found = {}
local function collect(key, kind, version)
  local rows = redis.call('ZRANGEBYSCORE', key, '(' .. decimal(version), '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
  for i = 1, #rows, 2 do found[#found + 1] = {tonumber(rows[i + 1]), kind, rows[i]} end
end
collect(index, 1, since)
collect(gone, 2, known)
table.sort(found, function(a, b) return a[1] < b[1] end)

local ids, has_more = {{}, {}}, #found > most
for i = 1, math.min(#found, most) do
  local list = ids[found[i][2]]
  list[#list + 1] = found[i][3]
end
local version = has_more and found[most][1] or math.max(since, newest)
local is_forgotten = known < index_fact(index, 'forgotten')
local is_unknown = known > newest or since < index_fact(index, 'born')
local is_over = since > 0 and (is_forgotten or is_unknown)
return {decimal(version), has_more and decimal(began) or '0', has_more and 1 or 0, is_over and 1 or 0, ids[1], ids[2]}
