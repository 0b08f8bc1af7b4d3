-- run/restart: makes a failed run due again.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow
-- Returns  {1, function} | {0} if there is no run | {3, phase} if it has not failed
-- Needs    lib/run
local id, key = ARGV[2], of('facts', ARGV[2])
local facts = redis.call('HMGET', key, 'fn', 'phase', 'epoch', 'lease')
if not facts[1] then return {0} end
if facts[2] ~= 'failed' then return {3, facts[2]} end
rest(id, facts[1], clock())
local now_ms = add_history(id, facts[3], facts[4], 'restarted')
redis.call('HSET', key, 'phase', 'retrying', 'tries', 0, 'changed', now_ms)
hint_run(facts[1], id)
return {1, facts[1]}
