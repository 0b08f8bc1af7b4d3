-- lib/era: not a verb, but what stands before every script that is carried out in one era only.
-- KEYS     [1] the store's marker; on a Cluster it is not asked
-- ARGV     none of its own
-- Returns  nothing; defines is_other_era

-- Whether the store is in another era than this one; '' is none, and never another. On a Cluster the name of the server's
-- witness stands behind the era. The witness is no key of the script, for it has a slot of its own: but it lies on this server,
-- and so it can be read. Where its slot has been moved away, reading it is an error.
local function is_other_era(presented)
  if presented == '' then return false end
  local era, witness = string.match(presented, '^(%x+) (.+)$')
  if not witness then return redis.call('HGET', KEYS[1], 'era') ~= presented end
  local found = redis.pcall('GET', witness)
  -- A server that lets no script read a second slot cannot be asked.
  if type(found) == 'table' and string.find(found.err, 'same slot', 1, true) then return false end
  return found ~= era
end
