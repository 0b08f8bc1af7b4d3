-- workflow/mark-read: marks results as read.
-- KEYS     [1] the bus key of streams, workflows and intents
-- ARGV     [1] the prefix of channel names, [2] workflow, [3] lease id, [4] how many positions
--          follow, these
-- Returns  {1, epoch} | {2, the holder of the lease or false}
-- Needs    lib/workflow
local current, refused = check_tenure(ARGV[2], ARGV[3])
if not current then return refused end
mark_read(ARGV[2], tonumber(ARGV[4]), 5)
return {1, current}
