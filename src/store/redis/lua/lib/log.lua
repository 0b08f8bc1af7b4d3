-- lib/log: positions in the log.
-- Needs    lib/fences
-- Defines  parts_of, last_of

-- The log is a Redis Stream with the ids `<ms>-<number>`. Numbers have no gaps, so a missing entry
-- shows. The first number is made from the time, like a fence, so the numbers of a log that was
-- lost are not used again.
local function parts_of(id)
  local ms, number = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(number)
end

-- The last id, '0-0' for none; or nil and an error.
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
