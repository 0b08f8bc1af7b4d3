-- log/trim: drops the entries of the log that are too old.
-- KEYS     [1] log
-- ARGV     [1] for how many ms entries are kept
-- Returns  how many were dropped | error text
-- Needs    lib/log
local last, problem = last_of(KEYS[1])
if not last then return problem end
local oldest = math.max(0, math.floor(clock() / 1000) - tonumber(ARGV[1]) + 1)
-- Exactly: nearly all nodes of the stream are dropped whole, so that costs little more than
-- approximately.
return redis.call('XTRIM', KEYS[1], 'MINID', '=', string.format('%.0f', oldest))
