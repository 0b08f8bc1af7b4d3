-- lib/run: runs of workflow functions, their steps and signals.
-- Needs    lib/workflow, lib/fences
-- Defines  RUN_MOST_BYTES, RUN_STEPS_MOST, RUN_SIGNALS_MOST, resting_of, given_of, rest, keep_text,
--          run_sizes, hint_run, due_in

-- As run-store.ts has them.
local RUN_STEPS_MOST, RUN_SIGNALS_MOST, RUN_MOST_BYTES = 1000, 1000, 16777216

-- Two sorted sets per function, by the µs at which a run is due. Runs that were given out are in
-- the second one, and all others that have a time in the first one.
local function resting_of(name) return WORK .. 'run:resting:' .. name end
local function given_of(name) return WORK .. 'run:given:' .. name end

-- Sets when a run is due, in µs; nil for no time.
local function rest(id, name, due_us)
  redis.call('ZREM', given_of(name), id)
  if due_us then
    redis.call('ZADD', resting_of(name), string.format('%.0f', due_us), id)
  else
    redis.call('ZREM', resting_of(name), id)
  end
end

-- A step is a text of lines: kind, '1' if it is done, µs at which it was first kept, JSON.
local function keep_text(kind, is_done, at_text, json)
  return kind .. '\n' .. is_done .. '\n' .. at_text .. '\n' .. json
end

-- How many steps and signals a workflow has, and their bytes.
local function run_sizes(id)
  local bytes = tonumber(redis.call('HGET', of('facts', id), 'bytes')) or 0
  return redis.call('HLEN', of('steps', id)), redis.call('HLEN', of('signals', id)), bytes
end

local function hint_run(name, id) hint(ARGV[1] .. 'run:' .. name, id) end

-- Milliseconds until this score, in µs; false for none.
local function due_in(score, now)
  return score and math.max(0, math.floor((tonumber(score) - now) / 1000 + 0.999)) or false
end
