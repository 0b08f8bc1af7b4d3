-- member/beat: writes a heartbeat, and enters its member in the set.
-- KEYS     [1] heartbeat, [2] the set of members
-- ARGV     [1] its attributes as JSON, [2] ttl ms, [3] its id
-- Returns  1
redis.call('SADD', KEYS[2], ARGV[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
