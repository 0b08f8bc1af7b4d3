-- workflow/mark-read: an orchestrator says what it has read.
-- KEYS     [1] the bus
-- ARGV     [1] what the names of channels begin with, [2] workflow, [3] lease id, [4] how many positions follow, these
-- Returns  {1, epoch} | {2, whose lease it is or false}
-- Needs    lib/workflow
local current, refused = standing(ARGV[2], ARGV[3])
if not current then return refused end
mark_read(ARGV[2], tonumber(ARGV[4]), 5)
return {1, current}
