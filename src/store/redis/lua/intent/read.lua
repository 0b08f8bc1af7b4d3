-- intent/read: the facts of sessions.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, then per session: id
-- Returns  per session: its facts | {name} if another program's value is there | false if there is
--          none
-- Needs    lib/session
local replies = {}
for i = 2, #ARGV do
  local facts, foreign = facts_of(ARGV[i])
  replies[i - 1] = facts or (foreign and {foreign}) or false
end
return replies
