-- workflow/revive: parks a dead action again, and notifies its orchestrator.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] target, [3] id of the dead entry
-- Returns  the workflow | false if there is no such entry, its workflow is gone, or has such an
--          action already
-- Needs    lib/lanes, lib/workflow
local stream = stream_at('action:' .. ARGV[2])
local entry = redis.call('XRANGE', stream.dead, ARGV[3], ARGV[3])[1]
if not entry or entry[2][7] ~= 'a' then return false end
local id, action_id, record = entry[2][2], entry[2][8], entry[2][10]
local facts = redis.call('HMGET', of('facts', id), 'epoch', 'lease', 'inbox')
if not facts[1] then return false end
-- The workflow may have been removed and begun again since, and have an unresolved action of that
-- id.
if redis.call('HSETNX', of('actions', id), action_id, record) == 0 then return false end
redis.call('XDEL', stream.dead, ARGV[3])
redis.call('SADD', of('parked', id), action_id)
-- The dead result is dropped, so that emitting the action again does not return it.
redis.call('HDEL', of('results', id), action_id)
local now_ms = add_history(id, facts[1], facts[2], 'revived', action_id, ARGV[2])
redis.call('HSET', of('facts', id), 'changed', now_ms)
if facts[3] then hint(facts[3], id) end
return id
