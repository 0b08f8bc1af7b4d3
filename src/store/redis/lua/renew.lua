-- renew: lengthens each lease whose holder the store names. It never creates one, and never touches a fence record, so
-- a late renewal can only lengthen its own holder's lease.
-- KEYS     per tenure: lease
-- ARGV     [1] ttl ms, then per tenure: holder
-- Returns  only what was not renewed: {index, holder or false} or {index, error text, 'error'}
local ttl, failures = ARGV[1], {}
for i, lease in ipairs(KEYS) do
  local current = redis.pcall('GET', lease)
  if current == ARGV[i + 1] then
    redis.call('PEXPIRE', lease, ttl)
  elseif type(current) == 'table' then
    failures[#failures + 1] = {i, current.err, 'error'}
  else
    failures[#failures + 1] = {i, current}
  end
end
return failures
