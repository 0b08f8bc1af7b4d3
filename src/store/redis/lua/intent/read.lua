-- intent/read: sessions, as they are.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, then per session: id
-- Returns  per session: facts | {name} if something else lies there | false if there is none
-- Needs    lib/session
local replies = {}
for i = 2, #ARGV do
  local facts, foreign = facts_of(ARGV[i])
  replies[i - 1] = facts or (foreign and {foreign}) or false
end
return replies
