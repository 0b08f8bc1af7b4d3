-- mint: not a verb, but what stands before every script that needs fences.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines FENCE_RECORD_MS, micros, digits and mint
local FENCE_RECORD_MS = '86400000'

-- The store's time in microseconds: as a double exact until the year 2255.
local function micros()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- A fence record is decimal digits, with a '!' behind them after a forced revocation.
local function digits(record)
  return record and string.match(record, '^(%d+)!?$')
end

-- The next fence of a key, or nil and what is wrong with its record.
local function mint(key, now, floor)
  local record = redis.pcall('GET', key)
  if not record then return math.max(now, floor) end
  if type(record) == 'table' then return nil, record.err end
  local previous = tonumber(digits(record))
  if not previous then return nil, 'FOREIGN fence record' end
  return math.max(previous + 1, now, floor)
end
