-- server/retain: removes servers that left long ago from a Cluster's marker. One that returns
-- counts as having forgotten.
-- KEYS     [1] the store's marker
-- ARGV     [1] ms for which a server that is not named is kept, then the servers there are: what
--          their fields begin with
-- Returns  how many were removed
-- Needs    lib/fences
local now, is_named, removed = math.floor(clock() / 1000), {}, 0
for i = 2, #ARGV do is_named[ARGV[i]] = true end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  local own = string.match(field, '^(.+:)since$')
  if own and not is_named[own] and now - tonumber(redis.call('HGET', KEYS[1], field)) > tonumber(ARGV[1]) then
    for _, name in ipairs({'era', 'run', 'replication', 'since', 'witness', 'former'}) do redis.call('HDEL', KEYS[1], own .. name) end
    removed = removed + 1
  end
end
return removed
