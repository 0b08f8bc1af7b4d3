-- revoke: ends a tenure against its holder's will. The fence is bumped either way. Without force the key keeps a
-- tombstone for the time the holder may still act; with force it is free at once, and the fence record is marked so
-- that the holder's next renewal can tell a revocation from an expiry.
-- KEYS     [1] lease
-- ARGV     [1] the tombstone, [2] '1' = force, [3] ms a tombstone stays where the lease has no expiry
-- Returns  {holder, new fence, ms the holder may still act} | false if nobody holds it
-- Before:  siblings.lua, mint.lua, wake.lua
local holder = redis.call('GET', KEYS[1])
if not holder or (holder == ARGV[1] and ARGV[2] ~= '1') then return false end
local remaining = redis.call('PTTL', KEYS[1])
if remaining < 0 then remaining = tonumber(ARGV[3]) end
local record = fence_of(KEYS[1])
local now, now_text = clock()
local force = ARGV[2] == '1'
local fence, problem = mint(record, now, now_text, 0, force and '!' or '')
if not fence then return redis.error_reply(problem) end
if force then
  redis.call('DEL', KEYS[1])
  wake(KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', math.max(remaining, 1))
end
return {holder, fence, remaining}
