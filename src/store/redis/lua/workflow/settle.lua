-- workflow/settle: stores the outcomes of actions.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] target, then per action: workflow, fence, outcome,
--          value as JSON, the reason of one that is dead, or ms until one is tried again, and the
--          error for the history
-- Returns  per action: 1 | 0 if the fence does not hold it any more
-- Needs    lib/claims, lib/workflow
local target, replies, now = ARGV[2], {}, clock()
local stream = stream_at('action:' .. target)

-- A result is a text of lines: its position, epoch, outcome, target, value. The last results and
-- all unread ones are kept.
local function keep(id, action_id, result)
  local unread, settled = of('unread', id), of('settled', id)
  local position = redis.call('XADD', unread, '*', 'a', action_id, 'r', result)
  redis.call('HSET', of('results', id), action_id, position .. '\n' .. result)
  if redis.call('RPUSH', settled, position .. ' ' .. action_id) <= RESULTS_KEPT then return end
  local old, old_id = string.match(redis.call('LPOP', settled), '^(%d+%-%d+) (.*)$')
  if old and #redis.call('XRANGE', unread, old, old) == 0 then forget_result(id, old, old_id) end
end

local function conclude(id, outcome, value, tries, reason, problem)
  local action_id = string.match(advance(stream, id) or '', '^%d+ (.*)$') or ''
  local record = redis.call('HGET', of('actions', id), action_id)
  if not record then return 0 end
  redis.call('HDEL', of('actions', id), action_id)
  keep(id, action_id, parts_of(record) .. '\n' .. outcome .. '\n' .. target .. '\n' .. value)
  if outcome == 'dead' then
    redis.call('XADD', stream.dead, '*', 'l', id, 't', tries, 'r', reason, 'a', action_id, 'w', record)
  end
  local facts = redis.call('HMGET', of('facts', id), 'epoch', 'lease', 'inbox')
  local now_ms = add_history(id, facts[1], facts[2], 'settled', action_id, target, outcome, problem ~= '' and tries .. ' ' .. problem or '')
  redis.call('HSET', of('facts', id), 'changed', now_ms)
  if facts[3] then hint(facts[3], id) end
  return 1
end

-- Another try follows.
local function report_try(id, tries, problem)
  local action_id = string.match(redis.call('LINDEX', lane_of(stream, id), 0) or '', '^%d+ (.*)$') or ''
  local facts = redis.call('HMGET', of('facts', id), 'epoch', 'lease')
  if facts[1] then add_history(id, facts[1], facts[2], 'retried', action_id, target, tries, problem) end
end

for i = 3, #ARGV, 6 do
  local id, outcome, tries = ARGV[i], ARGV[i + 2], held(stream, ARGV[i], ARGV[i + 1])
  local reply = tries and 1 or 0
  if tries and outcome == 'retry' then
    postpone(stream, id, tries, now + ARGV[i + 4] * 1000)
    if ARGV[i + 5] ~= '' then report_try(id, tries, ARGV[i + 5]) end
  elseif tries then
    reply = conclude(id, outcome, ARGV[i + 3], tries, ARGV[i + 4], ARGV[i + 5])
  end
  replies[#replies + 1] = reply
end
hint_stream(stream)
return replies
