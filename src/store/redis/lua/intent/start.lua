-- intent/start: for each start, finds the session that one of its keys leads to, the first key
-- first; else creates one and its start entry.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] kind, then per start: id of a new session, tenant,
--          client, body, status, priority, its entry in the stream as JSON, label, the number of
--          keys, the keys
-- Returns  per start: {1, created ms} | {2, facts, id} if there was one | {3, facts, id} if it has
--          too many clients | {0, name} if another program's value is there
-- Needs    lib/new-session
local kind, starts, led, replies = ARGV[2], {}, {}, {}

-- A session that no index names is neither listed nor recovered.
local function list_again(id, facts)
  if redis.call('ZSCORE', INTENT .. 'open', id) then return end
  local place = string.format('%.0f', -1000 * facts[7])
  for _, index in ipairs(indexes_of(facts[9], facts[1], facts[10])) do redis.call('ZADD', INTENT .. index, 'NX', place, id) end
end

-- The reply if one of the keys leads to a session.
local function find(start)
  local keys = start.keys
  for _, key in ipairs(keys) do
    local found, facts, foreign = led[key], nil, nil
    if found then facts, foreign = facts_of(found, start.client) end
    if foreign then return {0, foreign} end
    -- A session that is lost or has ended does not count.
    if facts and facts[2] ~= 'ENDED' then
      if not facts[11] then
        local count = facts[6] + 1
        if count > CLIENTS_MOST then return {3, facts, found} end
        redis.call('HSET', session_at(found), start.client, '', 'clients', count)
        facts[6] = count
      end
      for n = 1, #keys do
        if led[keys[n]] ~= found then
          add_key(found, keys[n])
          led[keys[n]] = found
        end
      end
      list_again(found, facts)
      return {2, facts, found}
    end
  end
end

local at, all = 3, {}
while at < #ARGV do
  local keys = {}
  for n = 1, tonumber(ARGV[at + 8]) do
    keys[#keys + 1] = ARGV[at + 8 + n]
    all[#all + 1] = keys[n]
  end
  starts[#starts + 1] = {
    id = ARGV[at], tenant = ARGV[at + 1], client = 'c:' .. ARGV[at + 2], body = ARGV[at + 3], status = ARGV[at + 4],
    priority = ARGV[at + 5], entry = ARGV[at + 6], label = ARGV[at + 7], keys = keys,
  }
  at = at + 9 + #keys
end
for n, id in ipairs(redis.call('HMGET', INTENT .. 'keys', unpack(all))) do led[all[n]] = id end

-- A start that has a key of an earlier new one waits for that one's session, and finds it.
local left = starts
while #left > 0 do
  local new, waiting, wanted = {}, {}, {}
  for _, start in ipairs(left) do
    local waits = false
    for _, key in ipairs(start.keys) do waits = waits or wanted[key] end
    start.reply = not waits and find(start)
    if not start.reply then
      local queue = waits and waiting or new
      queue[#queue + 1] = start
      for _, key in ipairs(start.keys) do wanted[key] = true end
    end
  end
  if #new > 0 then create(kind, new, led) end
  left = waiting
end
for n, start in ipairs(starts) do replies[n] = start.reply end
return replies
