-- lib/fences: the time of the store, and fences.
-- Defines  FENCE_RECORD_MS, MAX_NUMBER, clock, digits, mint
local FENCE_RECORD_MS = '86400000'

-- The store's time in microseconds, as a number (exact until the year 2255) and as the text of it.
local function clock()
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
  return now, string.format('%.0f', now)
end

-- The largest number that is exact in Lua.
local MAX_NUMBER = 9007199254740991

-- A fence record is decimal digits; then '!' if a forced revocation minted it; then '+' while an
-- inbox waits.
local RECORD = '^(%d+)!?%+?$'
local function digits(record)
  local number = record and string.match(record, RECORD)
  return number and tonumber(number) < MAX_NUMBER and number or nil
end

-- Mints the next fence of a key and writes its record, with a mark behind the digits if one is
-- given. Returns the fence; or nil and an error, if the record belongs to another program. Then it
-- is not touched.
local function mint(key, now, text, floor, mark)
  local old, previous = redis.pcall('GET', key), 0
  if old then
    if type(old) == 'table' then return nil, old.err end
    previous = tonumber(string.match(old, RECORD))
    if not previous or previous >= MAX_NUMBER then return nil, 'FOREIGN fence record' end
    if string.sub(old, -1) == '+' then mark = (mark or '') .. '+' end
  end
  local fence = math.max(previous + 1, now, floor)
  if fence ~= now then text = string.format('%.0f', fence) end
  if mark then text = text .. mark end
  local set = redis.pcall('SET', key, text, 'PX', FENCE_RECORD_MS)
  if set.err then return nil, set.err end
  return fence
end
