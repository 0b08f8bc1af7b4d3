-- server/format: says in which form this store's data is kept, and records the caller's where none
-- is recorded and the caller may.
-- KEYS     [1] the store's marker
-- ARGV     [1] the form the caller knows, [2] '1' if it may record it, '' if not
-- Returns  the form on record; the caller's if there is none
local format = redis.call('HGET', KEYS[1], 'format')
if not format and ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'format', ARGV[1]) end
return format or ARGV[1]
