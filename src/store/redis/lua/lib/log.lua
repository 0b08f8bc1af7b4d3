-- lib/log: not a verb, but what stands before every script about the log.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines parts_of and last_of
-- Needs    lib/fences

-- The log is a stream whose ids are `<ms>-<number>`. Numbers follow each other without gaps, so it shows when some are
-- missing. The first is made from the time, as fences are: so the numbers of a log that was lost do not come again.
local function parts_of(id)
  local ms, number = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(number)
end

-- The last id there was, '0-0' for none; or nil and what is wrong.
local function last_of(log)
  local facts = redis.pcall('XINFO', 'STREAM', log)
  if facts.err then
    if string.find(facts.err, 'no such key', 1, true) then return '0-0' end
    return nil, facts.err
  end
  for i = 1, #facts, 2 do
    if facts[i] == 'last-generated-id' then return facts[i + 1] end
  end
end
