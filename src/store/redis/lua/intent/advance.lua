-- intent/advance: changes state and status of a session.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] id, [3] the revision expected, [4] state, [5]
--          status, [6] when the revision was written, or nothing
-- Returns  {1, facts} | {2, facts} if it has another revision or has ended | {0, name} if another
--          program's value is there | false if there is none
-- Needs    lib/session
local facts, foreign = facts_of(ARGV[2])
if foreign then return {0, foreign} end
if not facts then return false end
local is_another = facts[3] ~= ARGV[3] or (ARGV[6] and facts[8] ~= ARGV[6])
if facts[2] == 'ENDED' or is_another then return {2, facts} end
change(ARGV[2], facts, ARGV[4], ARGV[5])
return {1, facts}
