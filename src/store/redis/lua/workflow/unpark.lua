-- workflow/unpark: emits parked actions again.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] the epoch expected, [5]
--          how many positions of read results follow, those positions
-- Returns  {1, epoch} | {2, the holder of the lease or false} | {3, epoch} if the workflow has
--          another
-- Needs    lib/parking
local id, lease_id = ARGV[2], ARGV[3]
local current, refused = check_tenure(id, lease_id)
if not current then return refused end
if tonumber(ARGV[4]) ~= current then return {3, current} end
mark_read(id, tonumber(ARGV[5]), 6)

local list = {}
for _, action_id in ipairs(redis.call('SMEMBERS', of('parked', id))) do
  local record = redis.call('HGET', of('actions', id), action_id)
  if record then
    list[#list + 1] = action_id
    list[#list + 1] = record
  end
end
local actions = sort_by_epoch(list)
local now_ms = reemit(id, actions, current, lease_id)
for _, action in ipairs(actions) do
  local _, _, target, priority = parts_of(action[3])
  local stream = action_stream(target)
  push(stream, id, priority .. ' ' .. action[2])
  hint_stream(stream)
end
redis.call('DEL', of('parked', id))
if now_ms then redis.call('HSET', of('facts', id), 'epoch', current + #actions, 'changed', now_ms) end
return {1, current + #actions}
