-- format: says in which form this store's data is kept, and writes it where nobody has yet.
-- KEYS     [1] the store's marker
-- ARGV     [1] the form the caller knows
-- Returns  the form
local format = redis.call('HGET', KEYS[1], 'format')
if not format then redis.call('HSET', KEYS[1], 'format', ARGV[1]) end
return format or ARGV[1]
