-- lease/revoke: ends a tenure against its holder's will. The fence is bumped either way. Without
-- force the key keeps a tombstone for the time the holder may still act; with force it is free at
-- once, and the fence record is marked so that the holder's next renewal can tell a revocation from
-- an expiry.
-- KEYS     [1] lease
-- ARGV     [1] the tombstone, [2] '1' = force, [3] ms a tombstone stays where the lease has no
--          expiry, [4] the fence of the tenure that is meant
-- Returns  {holder, new fence, ms the holder may still act, how many waiters were woken}
--          | {holder or false, fence} if that tenure does not hold it
-- Needs    lib/fences, lib/wake
local record = fence_of(KEYS[1])
local holder, recorded = redis.call('GET', KEYS[1]), redis.call('GET', record)
local fence_now = digits(recorded) or '0'
local force = ARGV[2] == '1'
if not holder or fence_now ~= ARGV[4] or (holder == ARGV[1] and not force) then return {holder, tonumber(fence_now)} end
local remaining = redis.call('PTTL', KEYS[1])
if remaining < 0 then remaining = tonumber(ARGV[3]) end
local now, now_text = clock()
local fence, problem = mint(record, now, now_text, 0, force and '!' or '')
if not fence then return redis.error_reply(problem) end
local woken = 0
if force then
  redis.call('DEL', KEYS[1])
  woken = wake(KEYS[1], 1)
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', math.max(remaining, 1))
end
return {holder, fence, remaining, woken}
