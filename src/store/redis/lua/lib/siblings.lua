-- lib/siblings: the keys beside a lease or a record.
-- Defines  sibling, fence_of, line_of, offer_of

-- A sibling hashes to the same slot of a Cluster as the lease: its hash tag is the lease's key, or
-- the hash tag of that key. So only leases are declared as KEYS. The word stands in front: behind
-- the name, the fence record of `a` would be the lease `a:fence`.
local function sibling(lease, what)
  if string.find(lease, '{', 1, true) then return what .. ':' .. lease end
  return what .. ':{' .. lease .. '}'
end

local function fence_of(lease) return sibling(lease, 'fence') end
local function line_of(lease) return sibling(lease, 'line') end
local function offer_of(lease) return sibling(lease, 'offer') end
