-- workflow/revive: parks a dead action again, and tells its orchestrator.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] target, [3] id of the dead entry
-- Returns  the workflow | false if there is no such entry, its workflow is gone, or has such an action already
-- Needs    lib/lanes, lib/workflow
local stream = stream_at('action:' .. ARGV[2])
local entry = redis.call('XRANGE', stream.dead, ARGV[3], ARGV[3])[1]
if not entry or entry[2][7] ~= 'a' then return false end
local id, action_id, record = entry[2][2], entry[2][8], entry[2][10]
local facts = redis.call('HMGET', of('facts', id), 'epoch', 'lease', 'inbox')
if not facts[1] then return false end
-- The workflow may have been removed and begun again since, and have an action of that id that is under way.
if redis.call('HSETNX', of('actions', id), action_id, record) == 0 then return false end
redis.call('XDEL', stream.dead, ARGV[3])
redis.call('SADD', of('parked', id), action_id)
-- It has no result any more: who asks for the action again is not told that it is dead.
redis.call('HDEL', of('results', id), action_id)
local now_ms = note(id, facts[1], facts[2], 'revived', action_id, ARGV[2])
redis.call('HSET', of('facts', id), 'changed', now_ms)
if facts[3] then hint(facts[3], id) end
return id
