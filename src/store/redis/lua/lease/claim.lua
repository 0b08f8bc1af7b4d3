-- lease/claim: takes a lease that was handed over in this era, while the store makes no new grants.
-- The giver held the key until then, so no other holder can act on a grant that the store has
-- forgotten. The successor may claim it; after the window, any client.
-- KEYS     [1] the store's marker, or on a Cluster the lease again; then per request: lease; on a
--          Cluster the fence record behind it
-- ARGV     [1] the era this client has examined, on a Cluster with the witness, [2] the same on
--          every store, [3] ttl ms, then per request: holder, fence floor
-- Returns  'ERA' if the marker has changed (nothing was done), else per request:
--          fence | false where it was not handed over, or to another | {error text}
-- Needs    lib/siblings, lib/fences, lib/era
if is_other_era(ARGV[1]) then return 'ERA' end
local era, ttl, now, now_text = ARGV[2], ARGV[3], clock()

local function claim(lease, holder, floor)
  local record, offer = fence_of(lease), offer_of(lease)
  local current = redis.pcall('GET', lease)
  if current and current ~= holder then return false end
  local offered, recorded = redis.pcall('HGET', offer, era), redis.pcall('GET', record)
  if type(offered) ~= 'string' or type(recorded) ~= 'string' or digits(recorded) ~= offered then return false end
  local fence, problem = mint(record, now, now_text, tonumber(floor))
  if not fence then return {problem} end
  redis.call('SET', lease, holder, 'PX', ttl)
  redis.call('DEL', offer)
  return fence
end

local replies = {}
for i = 4, #ARGV, 2 do
  replies[#replies + 1] = claim(KEYS[i / 2], ARGV[i], ARGV[i + 1])
end
return replies
