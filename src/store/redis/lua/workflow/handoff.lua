-- workflow/handoff: hands a tenure to a successor. The lease names it for a short window, with a
-- new fence.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] the epoch expected, [5]
--          how many positions of read results follow, those positions, the successor's lease id,
--          window ms
-- Returns  {1, epoch, fence} | {2, the holder of the lease or false} | {3, epoch} if the workflow
--          has another
-- Needs    lib/siblings, lib/fences, lib/parking
local id, lease_id, successor, window = ARGV[2], ARGV[3], ARGV[#ARGV - 1], ARGV[#ARGV]
local current, refused = check_tenure(id, lease_id)
if not current then return refused end
if tonumber(ARGV[4]) ~= current then return {3, current} end

local lease, now, now_text = of('lease', id), clock()
local fence, problem = mint(fence_of(lease), now, now_text, 0)
if not fence then return redis.error_reply(problem) end
redis.call('SET', lease, successor, 'PX', window)
mark_read(id, tonumber(ARGV[5]), 6)
park(id)
local epoch = current + 1
local now_ms = add_history(id, epoch, lease_id, 'transferred', successor, current)
redis.call('HSET', of('facts', id), 'lease', successor, 'epoch', epoch, 'begun', '0', 'changed', now_ms)
redis.call('HDEL', WORK .. 'workflow:tenures', lease_id)
redis.call('HSET', WORK .. 'workflow:tenures', successor, id)
return {1, epoch, fence}
