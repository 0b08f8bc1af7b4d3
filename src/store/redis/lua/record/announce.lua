-- record/announce: enters changes in a collection's index. For a Cluster, where a record and its
-- index lie on different servers; else the scripts that change records do it.
-- KEYS     [1] index
-- ARGV     [1] how many removals the index remembers, then per record: '+' or '-', and its id
-- Returns  1
-- Needs    lib/record-index
local changes = {}
for i = 2, #ARGV, 2 do changes[#changes + 1] = {ARGV[i] == '-', ARGV[i + 1]} end
announce(KEYS[1], changes, tonumber(ARGV[1]))
return 1
