-- record/put: writes each record whose conditions hold.
-- KEYS     [1] index, then per write: record
-- ARGV     [1] how many removals the index remembers, '' = the caller updates the index, then per
--          write: id, value as JSON, fence or '', expected revision or '' (0 = there is none)
-- Returns  per write: {1, revision} | {2, the fence seen} | {3, the revision found} | {error text}
-- Needs    lib/record-index, lib/record
local replies, changes, is_here = {}, {}, ARGV[1] ~= ''
for i = 2, #ARGV, 4 do
  local key, id, json, fence = KEYS[(i + 6) / 4], ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local value, revision, seen, last = read_record(key)
  local reply = value == nil and {revision} or refusal(revision, seen, fence, ARGV[i + 3])
  if not reply then
    local set = redis.pcall('SET', key, json)
    if set.err then
      reply = {set.err}
    else
      local meta = sibling(key, 'meta')
      redis.call('HSET', meta, 'revision', last + 1, 'fence', fence ~= '' and fence or seen, 'digest', redis.sha1hex(json))
      redis.call('PERSIST', meta)
      if is_here then redis.call('HSET', meta, 'told', last + 1) end
      changes[#changes + 1] = {false, id}
      reply = {1, last + 1}
    end
  end
  replies[#replies + 1] = reply
end
if is_here and #changes > 0 then announce(KEYS[1], changes, tonumber(ARGV[1])) end
return replies
