-- lib/record-index: the index of a collection of records.
-- Needs    lib/siblings, lib/fences
-- Defines  decimal, top, index_fact, announce

local function decimal(number) return string.format('%.0f', number) end

-- The index is a sorted set of ids by the version of their last change. The sibling `removed` has
-- the removed ids. Versions are times in microseconds, or higher: like fences they grow even after
-- data loss.
local function top(index)
  local newest = 0
  for _, key in ipairs({index, sibling(index, 'removed')}) do
    newest = math.max(newest, tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]) or 0)
  end
  return newest
end

-- The sibling `meta` has two versions. `born`: the first one; a reader with an earlier one has read
-- an index that was lost. `forgotten`: the newest removal that was dropped; a reader with an
-- earlier one has missed it.
local function index_fact(index, what) return tonumber(redis.call('HGET', sibling(index, 'meta'), what)) or 0 end

-- Drops all but the last `kept` removals.
local function forget(index, gone, kept)
  local newest = redis.call('ZREVRANGE', gone, kept, kept, 'WITHSCORES')[2]
  if not newest then return end
  redis.call('HSET', sibling(index, 'meta'), 'forgotten', decimal(tonumber(newest)))
  redis.call('ZREMRANGEBYRANK', gone, 0, -kept - 1)
end

-- Enters changes: {is it a removal, id} each.
local function announce(index, changes, kept)
  local gone = sibling(index, 'removed')
  local now = clock()
  local last = top(index)
  local version = math.max(last, now - 1)
  if last == 0 then redis.call('HSET', sibling(index, 'meta'), 'born', decimal(version)) end
  for _, change in ipairs(changes) do
    version = version + 1
    redis.call('ZREM', change[1] and index or gone, change[2])
    redis.call('ZADD', change[1] and gone or index, decimal(version), change[2])
  end
  forget(index, gone, kept)
end
