-- record/discover: finds records whose last change the index has not heard of, for another program has written, changed or removed
-- them, or a client could not tell of it; and notes what the index is told, so that it is told once.
-- KEYS     [1] index, or on a Cluster the record once more; then per record: record
-- ARGV     [1] how many removals the index remembers, '' = the index is elsewhere, and was told before this, then per record:
--          id, and what the index has been told of it: '' = nothing, a revision, '-' = that it is gone
-- Returns  per record: 1 if it was told | 0 if there is nothing to tell | as text, the revision to be told | false if there is
--          no such record | {error text}
-- Needs    lib/record-index, lib/record
local index, is_here, changes = KEYS[1], ARGV[1] ~= '', {}

local function is_listed(id) return is_here and redis.call('ZSCORE', index, id) end

local function tell(is_removal, id)
  changes[#changes + 1] = {is_removal, id}
  return 1
end

local function gone(meta, id, said)
  local was_listed = is_listed(id)
  if was_listed or said == '-' then redis.call('PEXPIRE', meta, FENCE_RECORD_MS) end
  return was_listed and tell(true, id)
end

local function examine(key, id, said)
  local meta = sibling(key, 'meta')
  local value, revision, _, _, told = look(key)
  if value == nil then return {revision} end
  if not value then return gone(meta, id, said) end
  local text = decimal(revision)
  if said ~= '' and said ~= text then return text end
  if told ~= revision then
    if not is_here and said == '' then return text end
    redis.call('HSET', meta, 'told', text)
  end
  -- It may have been removed before, and what is known of it be about to go.
  redis.call('PERSIST', meta)
  if is_here and (told ~= revision or not is_listed(id)) then return tell(false, id) end
  return 0
end

local replies = {}
for i = 2, #ARGV, 2 do replies[#replies + 1] = examine(KEYS[i / 2 + 1], ARGV[i], ARGV[i + 1]) end
if #changes > 0 then announce(index, changes, tonumber(ARGV[1])) end
return replies
