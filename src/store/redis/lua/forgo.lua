-- forgo: takes an inbox out of a line. If the key is free, the hint this inbox may have got goes to the next.
-- KEYS     [1] lease
-- ARGV     [1] inbox
-- Returns  1
-- Before:  siblings.lua, wake.lua
redis.call('ZREM', line_of(KEYS[1]), ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 0 then wake(KEYS[1]) end
return 1
