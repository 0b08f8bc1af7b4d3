-- lib/plain-grants: the first requests of lease/acquire that want a free key and have no options.
-- Redis makes each function of a script again on every call, which takes as long as a grant. So
-- these grants come before all functions. The first request that needs more ends them.
-- Defines  granted, first: the replies so far, and the place of the next request in ARGV
--          now, now_text: the store's time, if it has been read
local granted, first, now, now_text = {}, 4
-- A Cluster declares the fence record too, and its era has to be read in another way.
if #ARGV == #KEYS * 2 + 1 and (ARGV[1] == '' or redis.call('HGET', KEYS[1], 'era') == ARGV[1]) then
  for i = 4, #ARGV, 2 do
    local lease = KEYS[i / 2]
    local set = ARGV[i + 1] == '' and redis.pcall('SET', lease, ARGV[i], 'NX', 'PX', ARGV[2])
    if not set or set.err then break end
    local record = string.find(lease, '{', 1, true) and 'fence:' .. lease or 'fence:{' .. lease .. '}'
    if not now then
      local time = redis.call('TIME')
      now_text = time[1] .. string.sub('00000' .. time[2], -6)
      now = tonumber(now_text)
    end
    local old = redis.pcall('GET', record)
    local is_older = not old or (type(old) == 'string' and #old == #now_text and old < now_text and string.match(old, '^%d+$'))
    local put = is_older and redis.pcall('SET', record, now_text, 'PX', '86400000')
    -- A lease without a fence is no grant: lease/acquire decides about this key.
    if not put or put.err then
      redis.call('DEL', lease)
      break
    end
    granted[#granted + 1] = now
    first = i + 2
  end
  if first > #ARGV then return granted end
end
