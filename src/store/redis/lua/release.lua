-- release: ends each tenure that the store names by holder and fence, and wakes the next in line. A release that comes
-- late can never end a newer tenure, not even the same holder's.
-- KEYS     per tenure: lease
-- ARGV     per tenure: holder, fence
-- Returns  only what was not released: {index, holder or false, fence} or {index, error text, 'error'}
-- Before:  siblings.lua, mint.lua, wake.lua
local failures = {}
for i, lease in ipairs(KEYS) do
  local holder, fence, record = ARGV[i * 2 - 1], ARGV[i * 2], fence_of(lease)
  local current, recorded = redis.pcall('GET', lease), redis.pcall('GET', record)
  if type(current) == 'table' or type(recorded) == 'table' then
    failures[#failures + 1] = {i, (type(current) == 'table' and current or recorded).err, 'error'}
  elseif current == holder and recorded == fence then
    redis.call('DEL', lease)
  elseif current == holder and recorded == fence .. '+' then
    redis.call('DEL', lease)
    wake(lease)
    if redis.call('EXISTS', line_of(lease)) == 0 then redis.call('SET', record, fence, 'KEEPTTL') end
  elseif current == holder and not recorded then
    redis.call('DEL', lease)
    -- A tenure longer than its fence record leaves a fresh one, for a next clock that may lag behind this one.
    redis.call('SET', record, fence, 'PX', FENCE_RECORD_MS)
    wake(lease)
  else
    failures[#failures + 1] = {i, current, tonumber(digits(recorded)) or 0}
  end
end
return failures
