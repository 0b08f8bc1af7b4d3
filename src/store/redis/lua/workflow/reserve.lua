-- workflow/reserve: gives one action to a processor that knows it already, if it is due.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] target, [3] workflow, [4] action, [5] its lease id,
--          [6] its epoch, [7] consumer, [8] ms of the claim, '0' = check only, [9] '1' = strict
-- Returns  {'reserved', record, fence, how often it was given out} | {'lease', lease id of the
--          tenure or false} | {'replay', result} | {'stale' or 'future', the epoch it was compared
--          with}
-- Needs    lib/claims, lib/workflow
local target, id, action_id, epoch = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[6])
local stream, actions, now = stream_at('action:' .. target), of('actions', id), clock()

local facts = redis.call('HMGET', of('facts', id), 'lease', 'epoch')
if facts[1] ~= ARGV[5] then return {'lease', facts[1]} end
local result = redis.call('HGET', of('results', id), action_id)
if result then return {'replay', result} end
local current = tonumber(facts[2])
if epoch >= current then return {'future', current} end

local last, last_id = string.match(redis.call('HGET', of('targets', id), target) or '-1\n', '^(%S+)\n(.*)$')
last = tonumber(last)
local stale = {'stale', last >= 0 and last or current}
local record = redis.call('HGET', actions, action_id)
local own_epoch, _, own_target = parts_of(record or '')
if own_epoch ~= epoch or own_target ~= target then return stale end

local state = redis.call('HGET', stream.lanes, id) or ''
local first = redis.call('LINDEX', lane_of(stream, id), 0) or ''
local first_id = string.match(first, '^%d+ (.*)$')
local until_us = tonumber(redis.call('ZSCORE', stream.due, id)) or 0
if first_id == action_id and string.sub(state, 1, 1) == 'h' and until_us > now then return {'stale', epoch} end
if ARGV[9] == '1' then
  local lowest = epoch
  for _, each in ipairs(redis.call('HVALS', actions)) do
    local its_epoch, _, its_target = parts_of(each)
    if its_target == target then lowest = math.min(lowest, its_epoch) end
  end
  if lowest < epoch then return {'future', lowest} end
end
if first_id ~= action_id then
  local before = first_id and redis.call('HGET', actions, first_id)
  return {'future', before and parts_of(before) or current}
end
if epoch <= last and last_id ~= action_id then return stale end

local tries = tries_of(state)
if ARGV[8] == '0' then return {'reserved', record, 0, tries + 1} end
withdraw(stream, id, state)
redis.call('HSET', of('targets', id), target, epoch .. '\n' .. action_id)
return {'reserved', record, give(stream, {{id, tries}}, ARGV[7], tonumber(ARGV[8]), now), tries + 1}
