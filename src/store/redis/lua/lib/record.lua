-- lib/record: records, which are plain JSON under their own names.
-- Needs    lib/siblings, lib/fences
-- Defines  read_record, refusal

-- Other programs can read and write a record. The sibling `meta` has its revision, the highest
-- fence it has seen, the digest of its last known value, and `told`, the last revision that its
-- index was told of.

-- A value with another digest was written by another program, and is the next revision. It is noted
-- at once, so that the next value of that program gets another revision. Where nothing may be
-- written, nothing is noted.
local function note_revision(meta, revision, digest, was_known)
  local set = redis.pcall('HSET', meta, 'revision', revision, 'digest', digest)
  -- It expires until the record is listed: if the record is removed before that, no discovery finds
  -- its meta.
  if not was_known and type(set) == 'number' then redis.call('PEXPIRE', meta, FENCE_RECORD_MS) end
end

-- Returns  the value or false, its revision, the highest fence seen ('0' for none), the last
--          revision, the revision told; or
-- nil and an error.
local function read_record(key)
  local value, meta = redis.pcall('GET', key), sibling(key, 'meta')
  if type(value) == 'table' then return nil, value.err end
  local known = redis.pcall('HMGET', meta, 'revision', 'fence', 'digest', 'told')
  if known.err then return nil, known.err end
  local last = tonumber(known[1]) or 0
  local digest = value and redis.sha1hex(value)
  if value and digest ~= known[3] then
    last = last + 1
    note_revision(meta, last, digest, known[1])
  end
  return value, value and last or 0, known[2] or '0', last, tonumber(known[4])
end

-- Why a change is refused, or nil. The fence is checked first.
local function refusal(revision, seen, fence, if_revision)
  if fence ~= '' and tonumber(fence) < tonumber(seen) then return {2, tonumber(seen)} end
  if if_revision ~= '' and tonumber(if_revision) ~= revision then return {3, revision} end
end
