-- lib/siblings: not a verb, but what stands before every script that needs more of a lease than its key.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines fence_of, line_of and offer_of

-- What belongs to a lease lies in keys that hash to the same slot of a Cluster as the lease itself: the sibling's hash
-- tag is the lease's key, or the one that has. That is why only leases are declared as KEYS. The word stands in front: behind
-- the name it would make the fence record of `a` the lease `a:fence`.
local function sibling(lease, what)
  if string.find(lease, '{', 1, true) then return what .. ':' .. lease end
  return what .. ':{' .. lease .. '}'
end

local function fence_of(lease) return sibling(lease, 'fence') end
local function line_of(lease) return sibling(lease, 'line') end
local function offer_of(lease) return sibling(lease, 'offer') end
