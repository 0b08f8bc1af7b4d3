-- discover: finds records that another program has written, changed or removed, and notes what it finds, so that it is
-- found once. What is noted without being told would be lost: so where the index is elsewhere, it is told first.
-- KEYS     [1] index, or on a Cluster the record once more; then per record: record
-- ARGV     [1] how many removals the index remembers, '' = somebody else tells the index, then per record:
--          id, and what the index has been told of it: '' = nothing, the digest of its value, '-' = that it is gone
-- Returns  per record: 1 if it was told | 0 if there is nothing to tell | digest of a value to be told first | false if
--          there is no such record | {error text}
-- Before:  siblings.lua, mint.lua, index.lua
local index, is_here, changes = KEYS[1], ARGV[1] ~= '', {}

local function is_listed(id) return is_here and redis.call('ZSCORE', index, id) end

local function tell(is_removal, id)
  changes[#changes + 1] = {is_removal, id}
  return 1
end

local function gone(meta, id, told)
  local was_listed = is_listed(id)
  if was_listed or told == '-' then redis.call('PEXPIRE', meta, FENCE_RECORD_MS) end
  return was_listed and tell(true, id)
end

local function examine(key, id, told)
  local value, meta = redis.pcall('GET', key), sibling(key, 'meta')
  if type(value) == 'table' then return {value.err} end
  local known = redis.pcall('HMGET', meta, 'revision', 'digest')
  if known.err then return {known.err} end
  if not value then return gone(meta, id, told) end
  local digest = redis.sha1hex(value)
  local is_new = digest ~= known[2]
  if is_new and not is_here and told ~= digest then return digest end
  if is_new then redis.call('HSET', meta, 'revision', (tonumber(known[1]) or 0) + 1, 'digest', digest) end
  -- It may have been removed before, and what is known of it be about to go.
  redis.call('PERSIST', meta)
  if is_here and (is_new or not is_listed(id)) then return tell(false, id) end
  return 0
end

local replies = {}
for i = 2, #ARGV, 2 do replies[#replies + 1] = examine(KEYS[i / 2 + 1], ARGV[i], ARGV[i + 1]) end
if #changes > 0 then announce(index, changes, tonumber(ARGV[1])) end
return replies
