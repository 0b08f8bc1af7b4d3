-- lib/wake: waiters of a key that may be free.
-- Needs    lib/siblings
-- Defines  wake

-- Wakes the first `most` inboxes in line that still listen, each `apart` ms after the one before.
-- An inbox that does not listen any more is dropped. Returns how many were woken. A hint: where
-- publishing is forbidden, waiters wake at the expiry they have observed.
local function wake(lease, most, apart)
  local line, woken = line_of(lease), 0
  while woken < most do
    local first = redis.pcall('ZPOPMIN', line)
    if not first[1] then break end
    local hint = woken == 0 and lease or lease .. '\n' .. string.format('%.0f', woken * apart)
    local received = redis.pcall('PUBLISH', first[1], hint)
    if type(received) == 'table' or received > 0 then woken = woken + 1 end
  end
  return woken
end
