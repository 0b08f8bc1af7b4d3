-- log/read: entries after a position in the log, the oldest first.
-- KEYS     [1] log
-- ARGV     [1] the position, '' = from the oldest there is, [2] the limit
-- Returns  {1 if entries in between are lost, entries as XRANGE returns them} | error text
-- Needs    lib/log
local after = ARGV[1]
local last, problem = last_of(KEYS[1])
if not last then return problem end
local function from(start) return redis.call('XRANGE', KEYS[1], start, '+', 'COUNT', ARGV[2]) end
if after == '' then return {0, from('-')} end

local _, number = parts_of(after)
local found = from('(' .. after)
-- Entries of other programs have other numbers. But the oldest are dropped first: after an entry
-- that exists, none is missing.
local is_next = found[1] and (select(2, parts_of(found[1][1])) == number + 1
  or #redis.call('XRANGE', KEYS[1], after, after) == 1)
if is_next or (not found[1] and last == after) then return {0, found} end
return {1, from('-')}
