-- workflow/emit: emits actions of a workflow, and its epoch grows by one for each.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] the epoch expected, [5]
--          how many positions of read results follow, those positions; then per action: id, target,
--          priority, body, type and bytes for the history, the value of its step as JSON or '', the
--          name of its step
-- Returns  {1, epoch} | {2, the holder of the lease or false} | {3, epoch} if the workflow has
--          another | {4, unresolved, unread} if that would be too many, without the results that
--          have been read
-- Needs    lib/lanes, lib/workflow, lib/run
local id, lease_id, epoch, from = ARGV[2], ARGV[3], tonumber(ARGV[4]), 6 + ARGV[5]
local current, refused = check_tenure(id, lease_id)
if not current then return refused end

local ids, known, actions = {}, 0, of('actions', id)
for i = from, #ARGV, 7 do ids[#ids + 1] = ARGV[i] end
if #ids == 0 then
  mark_read(id, tonumber(ARGV[5]), 6)
  return {1, current}
end
local unresolved, resolved = redis.call('HMGET', actions, unpack(ids)), redis.call('HMGET', of('results', id), unpack(ids))
for i = 1, #ids do
  if unresolved[i] or resolved[i] then known = known + 1 end
end
if known == #ids then
  mark_read(id, tonumber(ARGV[5]), 6)
  return {1, current}
end
if known > 0 or epoch ~= current then return {3, current} end
local count = redis.call('HLEN', actions)
local following = count + #ids
-- Most workflows have few unread results: only the others are counted without those that have been
-- read.
if following > UNRESOLVED_MOST or following + redis.call('XLEN', of('unread', id)) > UNREAD_MOST then
  local unread = count_unread(id, tonumber(ARGV[5]), 6)
  if following > UNRESOLVED_MOST or following + unread > UNREAD_MOST then return {4, count, unread} end
end

mark_read(id, tonumber(ARGV[5]), 6)
local streams, targets, now_ms = {}, {}
for i = from, #ARGV, 7 do
  local action_id, target, priority = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local stream = streams[target]
  if not stream then
    stream = stream_at('action:' .. target)
    streams[target], targets[#targets + 1] = stream, stream
    -- The target has taken nothing yet.
    if redis.call('HSETNX', of('targets', id), target, '-1\n') == 1 then redis.call('ZADD', WORK .. 'stream:all', 0, stream.name) end
  end
  redis.call('HSET', actions, action_id, epoch .. '\n' .. lease_id .. '\n' .. target .. '\n' .. priority .. '\n' .. ARGV[i + 3])
  push(stream, id, priority .. ' ' .. action_id)
  epoch = epoch + 1
  now_ms = add_history(id, epoch, lease_id, 'emitted', action_id, target, ARGV[i + 4])
  if ARGV[i + 5] ~= '' then
    local _, now_text = clock()
    redis.call('HSETNX', of('steps', id), ARGV[i + 6], keep_text('call', '1', now_text, ARGV[i + 5]))
  end
end
redis.call('HSET', of('facts', id), 'epoch', epoch, 'changed', now_ms)
for _, stream in ipairs(targets) do hint_stream(stream) end
return {1, epoch}
