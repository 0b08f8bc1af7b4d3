-- record/discover: finds records whose last change the index does not have, because another program
-- has written, changed or removed them, or a client died before its announcement. Notes what the
-- index is told, so that it is told once.
-- KEYS     [1] index, or on a Cluster the record again; then per record: record
-- ARGV     [1] how many removals the index remembers, '' = the index is on another server, and was
--          updated before, then per record: id, and what the index has been told of it: '' =
--          nothing, a revision, '-' = that it is gone
-- Returns  per record: 1 if the index was updated | 0 if it need not be | as text, the revision to
--          announce | false if there is no such record | {error text}
-- Needs    lib/record-index, lib/record
local index, is_here, changes = KEYS[1], ARGV[1] ~= '', {}

local function is_listed(id) return is_here and redis.call('ZSCORE', index, id) end

local function enter(is_removal, id)
  changes[#changes + 1] = {is_removal, id}
  return 1
end

local function gone(meta, id, said)
  local was_listed = is_listed(id)
  if was_listed or said == '-' then redis.call('PEXPIRE', meta, FENCE_RECORD_MS) end
  return was_listed and enter(true, id)
end

local function compare(key, id, said)
  local meta = sibling(key, 'meta')
  local value, revision, _, _, told = read_record(key)
  if value == nil then return {revision} end
  if not value then return gone(meta, id, said) end
  local text = decimal(revision)
  if said ~= '' and said ~= text then return text end
  if told ~= revision then
    if not is_here and said == '' then return text end
    redis.call('HSET', meta, 'told', text)
  end
  -- The record may have been removed before, and its meta have an expiry.
  redis.call('PERSIST', meta)
  if is_here and (told ~= revision or not is_listed(id)) then return enter(false, id) end
  return 0
end

local replies = {}
for i = 2, #ARGV, 2 do replies[#replies + 1] = compare(KEYS[i / 2 + 1], ARGV[i], ARGV[i + 1]) end
if #changes > 0 then announce(index, changes, tonumber(ARGV[1])) end
return replies
