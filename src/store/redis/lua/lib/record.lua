-- lib/record: not a verb, but what stands before every script about records.
-- KEYS     none of its own
-- ARGV     none of its own
-- Returns  nothing; defines look and refusal
-- Needs    lib/siblings, lib/fences

-- A record is plain JSON under its own name, so that other programs can read and write it. What is known about it lies
-- in a sibling: its revision, the highest fence it has seen, the digest of the value it had then, and `told`, the last
-- revision that its index has heard of.

-- A value with another digest was written by another program, and is the next revision. It is noted at once: the reader of
-- this revision must not share it with whatever that program writes next. Where nothing may be written, nothing is noted.
local function note(meta, revision, digest, was_known)
  local set = redis.pcall('HSET', meta, 'revision', revision, 'digest', digest)
  -- Until it is listed: no look finds what is known of a record that is gone before that.
  if not was_known and type(set) == 'number' then redis.call('PEXPIRE', meta, FENCE_RECORD_MS) end
end

-- Gives the value or false, its revision, the fence seen ('0' for none), the last revision there was, the revision told; or
-- nil and an error.
local function look(key)
  local value, meta = redis.pcall('GET', key), sibling(key, 'meta')
  if type(value) == 'table' then return nil, value.err end
  local known = redis.pcall('HMGET', meta, 'revision', 'fence', 'digest', 'told')
  if known.err then return nil, known.err end
  local last = tonumber(known[1]) or 0
  local digest = value and redis.sha1hex(value)
  if value and digest ~= known[3] then
    last = last + 1
    note(meta, last, digest, known[1])
  end
  return value, value and last or 0, known[2] or '0', last, tonumber(known[4])
end

-- Why a change may not be made, or nil. Fences go first: who is too late need not know more.
local function refusal(revision, seen, fence, if_revision)
  if fence ~= '' and tonumber(fence) < tonumber(seen) then return {2, tonumber(seen)} end
  if if_revision ~= '' and tonumber(if_revision) ~= revision then return {3, revision} end
end
