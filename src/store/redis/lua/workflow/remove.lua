-- workflow/remove: removes a workflow that no orchestrator holds.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow
-- Returns  'removed' | 'held' | 'absent'
-- Needs    lib/parking, lib/run
local id = ARGV[2]
local facts = redis.call('HMGET', of('facts', id), 'lease', 'epoch', 'fn')
if not facts[2] then return 'absent' end
if redis.call('EXISTS', of('lease', id)) == 1 then return 'held' end
clear_lanes(id)
if facts[1] then redis.call('HDEL', WORK .. 'workflow:tenures', facts[1]) end
if facts[3] then rest(id, facts[3]) end
redis.call('ZREM', WORK .. 'workflow:all', id)
for _, what in ipairs({'facts', 'actions', 'parked', 'targets', 'unread', 'results', 'settled', 'history', 'steps', 'signals'}) do
  redis.call('DEL', of(what, id))
end
return 'removed'
