-- lib/work-keyspace: the keys of streams, workflows and intents. KEYS[1] is the bus key: a hash
-- with the last fence given out with an entry.
-- Defines  WORK, hint
-- All keys of these scripts begin with the same hash tag, so that on a Cluster each verb is one
-- script on one server. The bus key is declared, and the others are named from it.
local WORK = string.sub(KEYS[1], 1, -13)

-- A hint: where publishing is forbidden, a waiter finds out when it polls.
local function hint(channel, name)
  redis.pcall('PUBLISH', channel, WORK .. name)
end
