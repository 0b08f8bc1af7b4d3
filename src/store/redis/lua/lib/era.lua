-- lib/era: scripts that are executed in one era only. KEYS[1] is the marker; on a Cluster it is not
-- read.
-- Defines  is_other_era

-- Whether the store is in another era than the presented one. '' stands for no era, and is never
-- another. On a Cluster the name of the server's witness follows the era. The witness has a slot of
-- its own, so it is no key of the script. It lies on this server, so the script can read it. If its
-- slot has moved away, reading it is an error.
local function is_other_era(presented)
  if presented == '' then return false end
  local era, witness = string.match(presented, '^(%x+) (.+)$')
  if not witness then return redis.call('HGET', KEYS[1], 'era') ~= presented end
  local found = redis.pcall('GET', witness)
  -- Some servers do not let a script read a second slot: then the era is not checked.
  if type(found) == 'table' and string.find(found.err, 'same slot', 1, true) then return false end
  return found ~= era
end
