-- record/remove: removes each record whose conditions hold. The highest fence it has seen is kept
-- for a day.
-- KEYS     [1] index, then per removal: record
-- ARGV     [1] how many removals the index remembers, '' = the caller updates the index, then per
--          removal: id, fence or '', expected revision or ''
-- Returns  per removal: {1} | {0} if there is none | {2, the fence seen} | {3, the revision found}
--          | {error text}
-- Needs    lib/record-index, lib/record
local replies, changes = {}, {}
for i = 2, #ARGV, 3 do
  local key, id, fence = KEYS[(i + 4) / 3], ARGV[i], ARGV[i + 1]
  local value, revision, seen, last = read_record(key)
  local reply = value == nil and {revision} or refusal(revision, seen, fence, ARGV[i + 2])
  if not reply and not value then reply = {0} end
  if not reply then
    local meta = sibling(key, 'meta')
    redis.call('DEL', key)
    redis.call('HSET', meta, 'revision', last, 'fence', fence ~= '' and fence or seen)
    redis.call('PEXPIRE', meta, FENCE_RECORD_MS)
    changes[#changes + 1] = {true, id}
    reply = {1}
  end
  replies[#replies + 1] = reply
end
if ARGV[1] ~= '' and #changes > 0 then announce(KEYS[1], changes, tonumber(ARGV[1])) end
return replies
