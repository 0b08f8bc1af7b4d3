-- intent/list: some of the sessions of an index, the latest made first. What is lost is dropped from the index.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] the index, [3] the place behind which to begin, [4] how many at most
-- Returns  per session: {id, place, facts | {name} if something else lies there | false if it is lost}
-- Needs    lib/session
local index, replies = INTENT .. ARGV[2], {}
local found = redis.call('ZRANGEBYSCORE', index, '(' .. ARGV[3], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
for i = 1, #found, 2 do
  local facts, foreign = facts_of(found[i])
  if not facts and not foreign then redis.call('ZREM', index, found[i]) end
  replies[#replies + 1] = {found[i], found[i + 1], facts or (foreign and {foreign}) or false}
end
return replies
