-- record/get: records. Notes the revision of a value that another program wrote.
-- KEYS     per record: record
-- ARGV     none
-- Returns  per record: {value, revision, fence} | false if there is none | {error text}
-- Needs    lib/record
-- A larger value is not sent: only another program can have written it, and other requests would
-- wait for it.
local MOST_BYTES = 16777216

local replies = {}
for i, key in ipairs(KEYS) do
  local value, revision, seen = read_record(key)
  if value and #value > MOST_BYTES then replies[i] = {'LARGE ' .. #value}
  elseif value then replies[i] = {value, revision, tonumber(seen)}
  elseif value == nil then replies[i] = {revision}
  else replies[i] = false end
end
return replies
