-- log/append: adds entries at the end of the log, and drops the oldest if there are too many.
-- KEYS     [1] log
-- ARGV     [1] how many entries are kept, then the values as JSON
-- Returns  1 | error text, and nothing was added
-- Needs    lib/log
local last, problem = last_of(KEYS[1])
if not last then return problem end
local now = clock()
local ms, number = parts_of(last)
if number == 0 then number = now end
-- The clock may have been set back.
ms = math.max(ms, math.floor(now / 1000))
for i = 2, #ARGV do
  number = number + 1
  redis.call('XADD', KEYS[1], string.format('%.0f-%.0f', ms, number), 'v', ARGV[i])
end
-- Approximately: whole nodes of the stream, never below the limit.
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[1])
return 1
