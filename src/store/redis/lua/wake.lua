-- wake: not a verb, but what stands before every script that frees a key.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines wake
-- Before:  siblings.lua

-- Tells the first in line who still listens that the lease may be free. Who does not listen any more is dropped.
-- A hint: where publishing is forbidden, waiters wake at the expiry they have observed.
local function wake(lease)
  local line = line_of(lease)
  local first = redis.pcall('ZPOPMIN', line)
  while first[1] do
    local heard = redis.pcall('PUBLISH', first[1], lease)
    if type(heard) == 'table' or heard > 0 then return end
    first = redis.pcall('ZPOPMIN', line)
  end
end
