-- record/announce: tells a collection's index what has changed. Alone on a Cluster, where a record and its index lie on different
-- servers; else it stands before the verbs that change records.
-- KEYS     [1] index
-- ARGV     [1] how many removals the index remembers, then per record: '+' or '-', and its id
-- Returns  1
-- Needs    lib/record-index
local changes = {}
for i = 2, #ARGV, 2 do changes[#changes + 1] = {ARGV[i] == '-', ARGV[i + 1]} end
announce(KEYS[1], changes, tonumber(ARGV[1]))
return 1
