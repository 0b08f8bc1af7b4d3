-- workflow/remove: forgets a workflow that nobody holds.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] workflow
-- Returns  'removed' | 'held' | 'absent'
-- Needs    lib/parking
local id = ARGV[2]
local facts = redis.call('HMGET', of('facts', id), 'lease', 'epoch')
if not facts[2] then return 'absent' end
if redis.call('EXISTS', of('lease', id)) == 1 then return 'held' end
clear_lanes(id)
if facts[1] then redis.call('HDEL', HUB .. 'workflow:tenures', facts[1]) end
redis.call('ZREM', HUB .. 'workflow:all', id)
for _, what in ipairs({'facts', 'actions', 'parked', 'targets', 'unread', 'results', 'settled', 'history'}) do
  redis.call('DEL', of(what, id))
end
return 'removed'
