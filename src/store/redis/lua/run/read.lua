-- run/read: the runs of workflows.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, then per workflow: id
-- Returns  per workflow: {function, phase, tries, waits, value, ms until it is due or false} |
-- false
-- Needs    lib/run
local replies, now = {}, clock()
for i = 2, #ARGV do
  local facts = redis.call('HMGET', of('facts', ARGV[i]), 'fn', 'phase', 'tries', 'waits', 'value')
  local reply = false
  if facts[1] then
    reply = facts
    reply[6] = due_in(facts[2] ~= 'running' and redis.call('ZSCORE', resting_of(facts[1]), ARGV[i]), now)
  end
  replies[#replies + 1] = reply
end
return replies
