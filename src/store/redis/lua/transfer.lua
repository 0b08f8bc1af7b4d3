-- transfer: names a successor as holder for a short claim window, with a new fence, and tells it. If it never claims,
-- the window runs out and anyone may acquire.
-- KEYS     [1] lease
-- ARGV     [1] holder, [2] fence, [3] successor, [4] window ms, [5] inbox of the successor
-- Returns  {1, new fence} | {0, holder or false, fence}
-- Before:  siblings.lua, mint.lua
local record = fence_of(KEYS[1])
local current, recorded = redis.call('GET', KEYS[1]), redis.call('GET', record)
if current ~= ARGV[1] or (recorded and digits(recorded) ~= ARGV[2]) then
  return {0, current, tonumber(digits(recorded)) or 0}
end
local now, now_text = clock()
local fence, problem = mint(record, now, now_text, tonumber(ARGV[2]) + 1)
if not fence then return redis.error_reply(problem) end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
redis.pcall('PUBLISH', ARGV[5], KEYS[1])
return {1, fence}
