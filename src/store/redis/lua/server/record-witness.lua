-- server/record-witness: records the name of a server's witness, unless another client was first.
-- The former witness has been removed by then.
-- KEYS     [1] the store's marker
-- ARGV     [1] what the server's fields in the marker begin with, [2] the era that the witness
--          stands for, [3] the recorded name that the caller has read ('' for none), [4] the new
--          name
-- Returns  the name on record now; '' if the server is in another era, or none is on record
local own = ARGV[1]
local known = redis.call('HMGET', KEYS[1], own .. 'era', own .. 'witness')
if known[1] ~= ARGV[2] then return '' end
if (known[2] or '') ~= ARGV[3] then return known[2] or '' end
redis.call('HSET', KEYS[1], own .. 'witness', ARGV[4])
redis.call('HDEL', KEYS[1], own .. 'former')
return ARGV[4]
