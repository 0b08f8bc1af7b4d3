-- run/start: makes a workflow and the run of its function, due at once.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] function, [4] input as JSON, [5] the
--          first state as JSON
-- Returns  1 | {the function it has, or false} if the workflow exists
-- Needs    lib/run
local id, name, key = ARGV[2], ARGV[3], of('facts', ARGV[2])
local facts, now = redis.call('HMGET', key, 'epoch', 'fn'), clock()
if facts[1] then return {facts[2]} end
local now_ms = add_history(id, 0, nil, 'started', name)
redis.call('HSET', key, 'epoch', 0, 'state', ARGV[5], 'created', now_ms, 'changed', now_ms, 'fn', name,
  'phase', 'running', 'tries', 0, 'waits', 'null', 'value', 'null', 'input', ARGV[4])
redis.call('ZADD', WORK .. 'workflow:all', 0, id)
rest(id, name, now)
hint_run(name, id)
return 1
