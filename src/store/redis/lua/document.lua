-- document: not a verb, but what stands before every script about records.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines look and refusal
-- Before:  siblings.lua

-- A record is plain JSON under its own name, so that other programs can read and write it. What is known about it lies
-- in a sibling: its revision, the highest fence it has seen, and the digest of the value it had then. A value with
-- another digest was written by somebody else, and counts as one revision more.
-- Gives the value or false, its revision, the fence seen ('0' for none), the last revision there was; or an error.
local function look(key)
  local value = redis.pcall('GET', key)
  if type(value) == 'table' then return nil, value.err end
  local meta = redis.pcall('HMGET', sibling(key, 'meta'), 'revision', 'fence', 'digest')
  if meta.err then return nil, meta.err end
  local last = tonumber(meta[1]) or 0
  if value and redis.sha1hex(value) ~= meta[3] then last = last + 1 end
  return value, value and last or 0, meta[2] or '0', last
end

-- Why a change may not be made, or nil. Fences go first: who is too late need not know more.
local function refusal(revision, seen, fence, if_revision)
  if fence ~= '' and tonumber(fence) < tonumber(seen) then return {2, tonumber(seen)} end
  if if_revision ~= '' and tonumber(if_revision) ~= revision then return {3, revision} end
end
