-- member/read: heartbeats, and how long they last.
-- KEYS     per member: heartbeat
-- ARGV     none
-- Returns  per member: {value, remaining ms} | false if it does not beat any more; '' for a value
--          larger than Holdfast writes
local replies = {}
for i, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  replies[i] = type(value) == 'string' and {#value > 65536 and '' or value, redis.call('PTTL', key)}
end
return replies
