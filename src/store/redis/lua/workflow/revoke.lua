-- workflow/revoke: ends a tenure against its orchestrator's will, and frees its lease.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] lease id, [3] reason
-- Returns  {workflow, time in ms} | false if no workflow is in such a tenure
-- Needs    lib/fences, lib/parking, lib/wake
local lease_id, tenures = ARGV[2], WORK .. 'workflow:tenures'
local id = redis.call('HGET', tenures, lease_id)
if not id then return false end
local lease, now, now_text = of('lease', id), clock()
local holder = redis.call('GET', lease)
-- If the lease has expired, another orchestrator may hold it that has not begun yet.
if not holder or holder == lease_id then
  local fence, problem = mint(fence_of(lease), now, now_text, 0, '!')
  if not fence then return redis.error_reply(problem) end
end
if holder == lease_id then
  redis.call('DEL', lease)
  wake(lease, 1)
end
park(id)
local facts = redis.call('HMGET', of('facts', id), 'epoch', 'inbox')
local now_ms = add_history(id, facts[1], lease_id, 'revoked', ARGV[3])
redis.call('HDEL', tenures, lease_id)
redis.call('HDEL', of('facts', id), 'lease')
redis.call('HSET', of('facts', id), 'begun', '0', 'revoked', '1', 'changed', now_ms)
if facts[2] then hint(facts[2], id) end
return {id, now_ms}
