-- lease/wake-next: wakes the next waiters of each free key, after an inbox has left the lines.
-- KEYS     per key: lease; on a Cluster its fence record behind it, so that a moving slot answers
--          for both
-- ARGV     [1] the inbox that leaves, '' = none, [2] ms between the moments at which those woken
--          ask, then per key: how many to wake at most
-- Returns  per key: how many were woken
-- Needs    lib/wake
local replies = {}
for i = 3, #ARGV do
  local lease, woken = KEYS[i - 2], 0
  if ARGV[1] ~= '' then redis.pcall('ZREM', line_of(lease), ARGV[1]) end
  if redis.call('EXISTS', lease) == 0 then woken = wake(lease, tonumber(ARGV[i]), tonumber(ARGV[2])) end
  replies[#replies + 1] = woken
end
return replies
