-- workflow/unpark: emits what is parked anew.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] workflow, [3] lease id, [4] the epoch expected, [5] how many positions of
--          results that have been read follow, these
-- Returns  {1, epoch} | {2, whose lease it is or false} | {3, epoch} if that is another
-- Needs    lib/parking
local id, lease_id = ARGV[2], ARGV[3]
local current, refused = standing(id, lease_id)
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
local now_ms = emit_anew(id, actions, current, lease_id)
for _, action in ipairs(actions) do
  local _, _, target, priority = parts_of(action[3])
  local stream = action_stream(target)
  push(stream, id, priority .. ' ' .. action[2])
  tell(stream)
end
redis.call('DEL', of('parked', id))
if now_ms then redis.call('HSET', of('facts', id), 'epoch', current + #actions, 'changed', now_ms) end
return {1, current + #actions}
