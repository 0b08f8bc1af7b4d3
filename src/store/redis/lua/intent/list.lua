-- intent/list: one page of an index, the latest session first. Ids of lost sessions are dropped
-- from the index.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] the index, [3] the place behind which to begin, [4]
--          the limit
-- Returns  per session: {id, place, facts | {name} if another program's value is there | false if
--          it is lost}
-- Needs    lib/session
local index, replies = INTENT .. ARGV[2], {}
local found = redis.call('ZRANGEBYSCORE', index, '(' .. ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
for i = 1, #found, 2 do
  local facts, foreign = facts_of(found[i])
  if not facts and not foreign then redis.call('ZREM', index, found[i]) end
  replies[#replies + 1] = {found[i], found[i + 1], facts or (foreign and {foreign}) or false}
end
return replies
