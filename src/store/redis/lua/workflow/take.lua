-- workflow/take: gives actions to a processor. An action of another tenure is parked instead, and
-- reported.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] target, [3] consumer, [4] the limit, [5] ms of the
--          claim
-- Returns  per action: {1, workflow, id, record, fence, how often it was given out} |
--          {0, workflow, id, lease id of the action, that of the tenure or false}
-- Needs    lib/claims, lib/workflow
local target, now, replies, given, places = ARGV[2], clock(), {}, {}, {}
local stream = stream_at('action:' .. target)
for _, turn in ipairs(due_lanes(stream, tonumber(ARGV[4]), now)) do
  local id = turn[1]
  local action_id = string.match(redis.call('LINDEX', lane_of(stream, id), 0) or '', '^%d+ (.*)$') or ''
  local record, tenure = redis.call('HGET', of('actions', id), action_id), redis.call('HGET', of('facts', id), 'lease')
  local epoch, lease_id = parts_of(record or '')
  if record and lease_id == tenure then
    redis.call('HSET', of('targets', id), target, epoch .. '\n' .. action_id)
    given[#given + 1], places[#places + 1] = turn, #replies + 1
    replies[#replies + 1] = {1, id, action_id, record, 0, turn[2] + 1}
  else
    advance(stream, id)
    if record then
      redis.call('SADD', of('parked', id), action_id)
      replies[#replies + 1] = {0, id, action_id, lease_id, tenure}
    end
  end
end
local fence = give(stream, given, ARGV[3], tonumber(ARGV[5]), now)
for i, place in ipairs(places) do replies[place][5] = fence + i - 1 end
hint_stream(stream)
return replies
