-- mint: not a verb, but what stands before every script that needs fences.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines FENCE_RECORD_MS, clock, digits and mint
local FENCE_RECORD_MS = '86400000'

-- The store's time in microseconds, as a number (exact until the year 2255) and as the text of it.
local function clock()
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  return now, string.format('%.0f', now)
end

-- A fence record is decimal digits; then '!' if a forced revocation minted it; then '+' while somebody waits.
local function digits(record)
  return record and string.match(record, '^(%d+)!?%+?$')
end

-- Mints the next fence of a key and keeps its record, with a mark behind the digits if one is given. Nearly always the
-- time is higher than whatever was there, so it is written first, and what it replaced is looked at afterwards.
-- Gives the fence; or nil and what is wrong with the record, which is left as it was.
local function mint(key, now, text, floor, mark)
  local old = redis.pcall('SET', key, text, 'PX', FENCE_RECORD_MS, 'GET')
  if type(old) == 'table' then return nil, old.err end
  local previous = old and tonumber(digits(old)) or (not old and 0)
  if not previous then
    redis.pcall('SET', key, old, 'KEEPTTL')
    return nil, 'FOREIGN fence record'
  end
  local fence = math.max(previous + 1, now, floor)
  local behind = (mark or '') .. (old and string.sub(old, -1) == '+' and '+' or '')
  if fence ~= now or behind ~= '' then
    redis.call('SET', key, string.format('%.0f', fence) .. behind, 'PX', FENCE_RECORD_MS)
  end
  return fence
end
