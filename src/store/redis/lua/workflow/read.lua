-- workflow/read: snapshots of workflows.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, then per workflow: id
-- Returns  per workflow: {{lease id or false, epoch, state, created ms, changed ms, '1' if an
--          orchestrator began the tenure, its channel}, unresolved, parked, unread} | false if
--          there is none
-- Needs    lib/workflow
local replies = {}
for i = 2, #ARGV do replies[#replies + 1] = snapshot(ARGV[i]) end
return replies
