-- get: records, as they are.
-- KEYS     per record: record
-- ARGV     none
-- Returns  per record: {value, revision, fence} | false if there is none | {error text}
-- Before:  siblings.lua, document.lua
local replies = {}
for i, key in ipairs(KEYS) do
  local value, revision, seen = look(key)
  if value then replies[i] = {value, revision, tonumber(seen)}
  elseif value == nil then replies[i] = {revision}
  else replies[i] = false end
end
return replies
