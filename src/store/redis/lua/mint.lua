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

-- The next fence of a key: number, text, and '+' if somebody waits, else ''. Or nil and what is wrong with its record.
local function mint(key, now, text, floor)
  local record = redis.pcall('GET', key)
  if not record and floor <= now then return now, text, '' end
  if type(record) == 'table' then return nil, record.err end
  local previous = record and tonumber(digits(record)) or (not record and 0)
  if not previous then return nil, 'FOREIGN fence record' end
  local flag = record and string.sub(record, -1) == '+' and '+' or ''
  local fence = math.max(previous + 1, now, floor)
  if fence ~= now then text = string.format('%.0f', fence) end
  return fence, text, flag
end
