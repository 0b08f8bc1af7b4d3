-- lib/work-keyspace: not a verb, but what stands before every script about streams, workflows or intents.
-- KEYS     [1] the bus: a hash with the last fence that was given out with an entry
-- ARGV     [1] what the names of channels begin with
-- Returns  nothing; defines HUB and hint
-- All that these scripts touch has the same hash tag in front, so that on a Cluster each verb is one script on one server. One
-- key is declared; the others are named from it.
local HUB = string.sub(KEYS[1], 1, -13)

-- A hint: where publishing is forbidden, who waits finds out when it looks.
local function hint(channel, name)
  redis.pcall('PUBLISH', channel, HUB .. name)
end
