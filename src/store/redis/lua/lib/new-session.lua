-- lib/new-session: sessions that are created together.
-- Needs    lib/lanes, lib/session
-- Defines  add_key, indexes_of, create

-- Lets another key lead to a session.
local function add_key(id, key)
  local at = session_at(id)
  local count = (tonumber(redis.call('HGET', at, 'keys')) or 0) + 1
  redis.call('HSET', at, 'keys', count, 'key:' .. count, key)
  redis.call('HSET', INTENT .. 'keys', key, id)
end

local function indexes_of(kind, tenant, label)
  return {'all', 'open', 'all:' .. tenant, 'open:' .. tenant, 'of:all:' .. kind, 'of:open:' .. kind, 'label:' .. kind .. ':' .. label}
end

-- Creates sessions, and notes where their keys lead. In this order: if one write fails because of
-- another program's value, the earlier ones name a session that does not exist, which their readers
-- find out.
local function create(kind, new, led)
  local now_ms, now = now_of()
  local latest = redis.call('ZRANGE', INTENT .. 'all', 0, 0, 'WITHSCORES')[2]
  local before = math.min(tonumber(latest) or 0, 1 - now)
  local stream, order, members, index = stream_at(start_stream(kind)), {}, {}, nil
  for n, start in ipairs(new) do
    push(stream, start.id, start.priority .. ' ' .. start.entry)
    local place = string.format('%.0f', before - n)
    for _, name in ipairs(indexes_of(kind, start.tenant, start.label)) do
      index = members[name]
      if not index then
        index, order[#order + 1] = {}, name
        members[name] = index
      end
      index[#index + 1] = place
      index[#index + 1] = start.id
    end
  end
  redis.call('ZADD', WORK .. 'stream:all', 0, stream.name)
  -- One index of a tenant may be another program's: that fails no start of another tenant.
  local failed = {}
  for _, name in ipairs(order) do
    local reply = redis.pcall('ZADD', INTENT .. name, 'NX', unpack(members[name]))
    if type(reply) == 'table' and reply.err then
      for n = 2, #members[name], 2 do failed[members[name][n]] = INTENT .. name end
    end
  end
  for _, start in ipairs(new) do
    local id, keys = start.id, start.keys
    if failed[id] then
      start.reply = {0, failed[id]}
    else
      redis.call('HSET', session_at(id), 'tenant', start.tenant, 'kind', kind, 'label', start.label, 'state', 'NEW', 'revision', 1,
        'body', start.body, 'status', start.status, 'clients', 1, 'created', now_ms, 'changed', now_ms, 'priority', start.priority,
        start.client, '', 'keys', 1, 'key:1', keys[1])
      redis.call('HSET', INTENT .. 'keys', keys[1], id)
      led[keys[1]] = id
      for n = 2, #keys do
        add_key(id, keys[n])
        led[keys[n]] = id
      end
      start.reply = {1, now_ms}
    end
  end
  hint_stream(stream)
end
