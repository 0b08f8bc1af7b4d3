-- log/recall: entries before a position in the log, the newest first.
-- KEYS     [1] log
-- ARGV     [1] the position, '' = from the newest there is, [2] the limit
-- Returns  {0, entries as XREVRANGE gives them} | error text
-- Needs    lib/log
local last, problem = last_of(KEYS[1])
if not last then return problem end
local newest = ARGV[1] == '' and '+' or '(' .. ARGV[1]
return {0, redis.call('XREVRANGE', KEYS[1], newest, '-', 'COUNT', ARGV[2])}
