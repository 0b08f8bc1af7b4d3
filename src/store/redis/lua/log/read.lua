-- log/read: what comes after a position in the log, the oldest first.
-- KEYS     [1] log
-- ARGV     [1] the position, '' = from the oldest there is, [2] how many at most
-- Returns  {1 if what is missing in between can not be told, entries as XRANGE gives them} | error text
-- Needs    lib/log
local after = ARGV[1]
local last, problem = last_of(KEYS[1])
if not last then return problem end
local function from(start) return redis.call('XRANGE', KEYS[1], start, '+', 'COUNT', ARGV[2]) end
if after == '' then return {0, from('-')} end

local _, number = parts_of(after)
local found = from('(' .. after)
-- Entries of other programs have numbers of their own. But the oldest go first: nothing is missing behind one that is there.
local is_next = found[1] and (select(2, parts_of(found[1][1])) == number + 1
  or #redis.call('XRANGE', KEYS[1], after, after) == 1)
if is_next or (not found[1] and last == after) then return {0, found} end
return {1, from('-')}
