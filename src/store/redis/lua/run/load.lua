-- run/load: everything that is kept of a workflow beyond its actions.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow
-- Returns  {{function, phase, tries, waits, value, input}, ms until it is due or false, {name,
--          step, …}, {id, signal, …}, now in µs} | false if there is no workflow
-- Needs    lib/run
local id, now, now_text = ARGV[2], clock()
local facts = redis.call('HMGET', of('facts', id), 'fn', 'phase', 'tries', 'waits', 'value', 'input', 'epoch')
if not facts[7] then return false end
local due = facts[1] and facts[2] ~= 'running' and redis.call('ZSCORE', resting_of(facts[1]), id)
return {facts, due_in(due, now), redis.call('HGETALL', of('steps', id)), redis.call('HGETALL', of('signals', id)), now_text}
