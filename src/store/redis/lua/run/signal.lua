-- run/signal: keeps a signal to a workflow, and makes its run due.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] id of the signal, [4] name, [5] value
--          as JSON
-- Returns  {1} | {0} if there is no workflow | {3} if its function has returned | {4, steps,
--          signals, bytes} if that would be too many
-- Needs    lib/run
local id, key, json = ARGV[2], of('facts', ARGV[2]), ARGV[5]
local facts = redis.call('HMGET', key, 'epoch', 'lease', 'inbox', 'fn', 'phase')
if not facts[1] then return {0} end
if redis.call('HGET', of('signals', id), ARGV[3]) then return {1} end
if facts[5] == 'done' then return {3} end
local steps, signals, bytes = run_sizes(id)
bytes = bytes + #json
if signals >= RUN_SIGNALS_MOST or bytes > RUN_MOST_BYTES then return {4, steps, signals, bytes} end
-- A signal is a text of lines: µs at which it came, '1' if it was received, name, JSON.
local now, now_text = clock()
redis.call('HSET', of('signals', id), ARGV[3], now_text .. '\n0\n' .. ARGV[4] .. '\n' .. json)
local now_ms = add_history(id, facts[1], facts[2], 'signalled', ARGV[4])
redis.call('HSET', key, 'bytes', bytes, 'changed', now_ms)
if facts[5] == 'suspended' then
  rest(id, facts[4], now)
  hint_run(facts[4], id)
end
if facts[3] then hint(facts[3], id) end
return {1}
