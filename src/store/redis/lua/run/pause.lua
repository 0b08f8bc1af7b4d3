-- run/pause: ends what the orchestrator does with a run, for now or permanently.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] phase, [5] how many
--          signals its function knows of, [6] ms until it is due, or '', [7] tries, [8] waits as
--          JSON, [9] value as JSON, [10] detail for the history, then per step to forget: its name
-- Returns  {1} | {2, the holder of the lease or false} | {3} if there are more signals
-- Needs    lib/run
local id, lease_id, phase, key = ARGV[2], ARGV[3], ARGV[4], of('facts', ARGV[2])
local current, refused = check_tenure(id, lease_id)
if not current then return refused end
local name = redis.call('HGET', key, 'fn')
if not name then return {2, false} end
if redis.call('HLEN', of('signals', id)) ~= tonumber(ARGV[5]) then return {3} end
local bytes = tonumber(redis.call('HGET', key, 'bytes')) or 0
for i = 11, #ARGV do
  local old = redis.call('HGET', of('steps', id), ARGV[i])
  bytes = bytes - #(string.match(old or '', '^.-\n%d\n%d+\n(.*)$') or '')
  redis.call('HDEL', of('steps', id), ARGV[i])
end
rest(id, name, ARGV[6] ~= '' and clock() + ARGV[6] * 1000 or nil)
local now_ms = add_history(id, current, lease_id, 'paused', phase, ARGV[10])
redis.call('HSET', key, 'phase', phase, 'tries', ARGV[7], 'waits', ARGV[8], 'value', ARGV[9], 'bytes', bytes, 'changed', now_ms)
if phase == 'done' or phase == 'failed' or ARGV[6] ~= '' then hint_run(name, id) end
return {1}
