-- workflow/read: workflows, as they are.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, then per workflow: id
-- Returns  per workflow: {{lease id or false, epoch, state, created ms, changed ms}, unresolved, parked, unread} | false if there is none
-- Needs    lib/workflow
local replies = {}
for i = 2, #ARGV do replies[#replies + 1] = snapshot(ARGV[i]) end
return replies
