-- run/keep: keeps a step of a workflow, and receives a signal with it.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] name of the step, [5]
--          kind, [6] '1' = done, [7] value as JSON, [8] id of the signal that it receives, or ''
-- Returns  {1, µs at which it was first kept, now in µs} | {2, the holder of the lease or false} |
--          {4, steps, signals, bytes} if that would be too many
-- Needs    lib/run
local id, lease_id, name, is_done, json = ARGV[2], ARGV[3], ARGV[4], ARGV[6], ARGV[7]
local current, refused = check_tenure(id, lease_id)
if not current then return refused end
local _, now_text = clock()
local old = redis.call('HGET', of('steps', id), name)
local was_done, old_at, old_json = string.match(old or '', '^.-\n(%d)\n(%d+)\n(.*)$')
-- The same request may be sent again, because its answer was lost.
if was_done == '1' or (was_done == '0' and is_done == '0') then
  return {1, old_at, now_text}
end
local steps, signals, bytes = run_sizes(id)
bytes = bytes + #json - #(old_json or '')
if (not old and steps >= RUN_STEPS_MOST) or bytes > RUN_MOST_BYTES then return {4, steps, signals, bytes} end
redis.call('HSET', of('steps', id), name, keep_text(ARGV[5], is_done, old_at or now_text, json))
if ARGV[8] ~= '' then
  local signal = redis.call('HGET', of('signals', id), ARGV[8])
  local at, of_name, value = string.match(signal or '', '^(%d+)\n0\n(.-)\n(.*)$')
  if at then
    redis.call('HSET', of('signals', id), ARGV[8], at .. '\n1\n' .. of_name .. '\nnull')
    bytes = bytes - #value
  end
end
local now_ms = add_history(id, current, lease_id, 'kept', name, ARGV[5], is_done)
redis.call('HSET', of('facts', id), 'bytes', bytes, 'changed', now_ms)
return {1, old_at or now_text, now_text}
