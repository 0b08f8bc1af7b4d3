-- workflow/update: sets the state of a workflow.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] the epoch expected, [5]
--          how many positions of read results follow, those positions, the state as JSON
-- Returns  {1, epoch} | {2, the holder of the lease or false} | {3, epoch} if the workflow has
--          another
-- Needs    lib/workflow
local id, lease_id, following, state = ARGV[2], ARGV[3], ARGV[4] + 1, ARGV[#ARGV]
local current, refused = check_tenure(id, lease_id)
if not current then return refused end
local key = of('facts', id)
if current == following then
  -- The same step may be sent again, because its answer was lost.
  local last = redis.call('HMGET', key, 'updated', 'state')
  if last[1] == following .. '' and last[2] == state then
    mark_read(id, tonumber(ARGV[5]), 6)
    return {1, current}
  end
end
if current + 1 ~= following then return {3, current} end
mark_read(id, tonumber(ARGV[5]), 6)
-- The history keeps small states only, and the size of larger ones.
local is_small = #state <= HISTORY_STATE_MOST
local now_ms = add_history(id, following, lease_id, 'updated', is_small and state or 'null', is_small and '' or #state)
redis.call('HSET', key, 'epoch', following, 'state', state, 'updated', following, 'changed', now_ms)
return {1, following}
