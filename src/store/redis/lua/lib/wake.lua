-- lib/wake: not a verb, but what stands before every script that frees a key.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines wake
-- Needs    lib/siblings

-- Tells the first in line who still listens that the lease may be free; or the first few, each to ask `apart` ms after the
-- one before. Who does not listen any more is dropped. Gives how many were told.
-- A hint: where publishing is forbidden, waiters wake at the expiry they have observed.
local function wake(lease, most, apart)
  local line, told = line_of(lease), 0
  while told < most do
    local first = redis.pcall('ZPOPMIN', line)
    if not first[1] then break end
    local hint = told == 0 and lease or lease .. '\n' .. string.format('%.0f', told * apart)
    local heard = redis.pcall('PUBLISH', first[1], hint)
    if type(heard) == 'table' or heard > 0 then told = told + 1 end
  end
  return told
end
