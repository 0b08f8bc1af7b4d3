-- run/due: gives out runs that are due and that no orchestrator holds.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] the limit, [3] ms until a run that was given out is
--          due again, then per function: its name
-- Returns  {ms until the next resting run is due or false, the same of runs that were given out,
--          workflow, function, …}
-- Needs    lib/run
local HELD_AGAIN_MS, PAGE = 200, 100
local most, grace, now, now_text = tonumber(ARGV[2]), tonumber(ARGV[3]), clock()
local replies, given, first, first_given = {false, false}, 0

-- A run that has just been paused is free in a moment. One that was given out is free when its
-- holder has died.
local function postpone_held(key, id, left_ms, is_resting)
  if left_ms < 0 then left_ms = grace end
  if is_resting then left_ms = math.min(left_ms, HELD_AGAIN_MS) end
  redis.call('ZADD', key, string.format('%.0f', now + left_ms * 1000 + 1000), id)
end

local function give_out(key, name, is_resting)
  while given < most do
    local found = redis.call('ZRANGEBYSCORE', key, '-inf', now_text, 'LIMIT', 0, PAGE)
    for _, id in ipairs(found) do
      local left_ms = redis.call('PTTL', of('lease', id))
      if left_ms ~= -2 then
        postpone_held(key, id, left_ms, is_resting)
      elseif given < most then
        redis.call('ZREM', resting_of(name), id)
        redis.call('ZADD', given_of(name), string.format('%.0f', now + grace * 1000), id)
        redis.call('HSET', of('facts', id), 'phase', 'running')
        given = given + 1
        replies[#replies + 1] = id
        replies[#replies + 1] = name
      end
    end
    if #found < PAGE then return end
  end
end

-- The first score of a sorted set, if it is earlier than this one.
local function earlier(score, key)
  local found = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  return found and math.min(score or tonumber(found), tonumber(found)) or score
end

for i = 4, #ARGV do
  local name = ARGV[i]
  give_out(resting_of(name), name, true)
  give_out(given_of(name), name, false)
  first, first_given = earlier(first, resting_of(name)), earlier(first_given, given_of(name))
end
replies[1], replies[2] = due_in(first, now), due_in(first_given, now)
return replies
