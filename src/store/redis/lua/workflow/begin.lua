-- workflow/begin: begins a tenure of a workflow, which is created if there is none. Unresolved
-- actions are emitted again, or dropped.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] fence of the lease, [5]
--          channel of the orchestrator, [6] '1' = resume after a revocation, [7] the first state as
--          JSON
-- Returns  {1, snapshot, {id, record, …} emitted again, {id, record, …} dropped} | {2, the holder
--          of the lease or false}
-- Needs    lib/siblings, lib/fences, lib/lane-order
local id, lease_id, lease = ARGV[2], ARGV[3], of('lease', ARGV[2])
local holder, recorded = redis.call('GET', lease), digits(redis.call('GET', fence_of(lease)))
if holder ~= lease_id or (recorded and recorded ~= ARGV[4]) then return {2, holder} end

local key = of('facts', id)
local facts = redis.call('HMGET', key, 'lease', 'epoch', 'begun', 'revoked', 'inbox')
if facts[1] == lease_id and facts[3] == '1' then
  -- Another orchestrator has the lease id: a tenure has one orchestrator.
  if facts[5] ~= ARGV[5] then return {2, lease_id} end
  return {1, snapshot(id), {}, {}}
end

local epoch, is_dropping = tonumber(facts[2]) or 0, facts[4] == '1' and ARGV[6] ~= '1'
local actions = sort_by_epoch(redis.call('HGETALL', of('actions', id)))
local count, listed = #actions, {}
local now_ms = add_history(id, epoch, lease_id, 'claimed', is_dropping and 0 or count, is_dropping and count or 0)
if not facts[2] then
  redis.call('HSET', key, 'state', ARGV[7], 'created', now_ms)
  redis.call('ZADD', WORK .. 'workflow:all', 0, id)
end
if is_dropping then
  clear_lanes(id)
  redis.call('DEL', of('actions', id))
  for _, action in ipairs(actions) do
    local _, _, target = parts_of(action[3])
    add_history(id, epoch, lease_id, 'dropped', action[2], target)
  end
else
  claimed_first(id, actions)
  reemit(id, actions, epoch, lease_id)
  rebuild_lanes(id, actions)
  epoch = epoch + count
end
redis.call('DEL', of('parked', id))
if facts[1] then redis.call('HDEL', WORK .. 'workflow:tenures', facts[1]) end
redis.call('HSET', WORK .. 'workflow:tenures', lease_id, id)
redis.call('HSET', key, 'lease', lease_id, 'epoch', epoch, 'begun', '1', 'revoked', '0', 'updated', '', 'inbox', ARGV[5], 'changed', now_ms)
for i, action in ipairs(actions) do
  listed[2 * i - 1], listed[2 * i] = action[2], action[3]
end
return {1, snapshot(id), is_dropping and {} or listed, is_dropping and listed or {}}
