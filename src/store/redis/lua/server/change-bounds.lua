-- server/change-bounds: replaces the bounds that the store's marker records. From then on every
-- server counts as having forgotten: each client examines the marker before its next grant, and is
-- refused if it has other bounds.
-- KEYS     [1] the store's marker
-- ARGV     the bounds of the keyspaces lease, poll and workflow in ms
-- Returns  1
redis.call('HSET', KEYS[1], 'maxttl:lease', ARGV[1], 'maxttl:poll', ARGV[2], 'maxttl:workflow', ARGV[3])
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.match(field, 'era$') or string.match(field, 'run$') then redis.call('HDEL', KEYS[1], field) end
end
return 1
