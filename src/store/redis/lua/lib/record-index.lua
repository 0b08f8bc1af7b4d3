-- lib/record-index: not a verb, but what stands before every script about the index of a collection.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines decimal, top, noted and announce
-- Needs    lib/siblings, lib/fences

local function decimal(number) return string.format('%.0f', number) end

-- The index is a sorted set of ids by the version of their last change, and beside it one of those removed. Versions are
-- times in microseconds, or more: they go on growing after a loss of data, as fences do.
local function top(index)
  local newest = 0
  for _, key in ipairs({index, sibling(index, 'removed')}) do
    newest = math.max(newest, tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]) or 0)
  end
  return newest
end

-- Two versions are noted beside the index. `born`: at which it began; a reader that knows an earlier one has seen an index
-- that was lost. `forgotten`: that of the newest removal ever dropped; a reader that knows only an earlier one has missed it.
local function noted(index, what) return tonumber(redis.call('HGET', sibling(index, 'meta'), what)) or 0 end

-- Drops all removals but the last `kept`.
local function forget(index, gone, kept)
  local newest = redis.call('ZREVRANGE', gone, kept, kept, 'WITHSCORES')[2]
  if not newest then return end
  redis.call('HSET', sibling(index, 'meta'), 'forgotten', decimal(tonumber(newest)))
  redis.call('ZREMRANGEBYRANK', gone, 0, -kept - 1)
end

-- Each change: {was it a removal, id}.
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
