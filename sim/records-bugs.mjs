/**
 * Bugs of who follows the sessions of a store: what is there and never seen, what is gone and never dropped. They are looked for
 * where sessions come and go by the dozen.
 */
const worlds = { kind: 'records', hours: 0.1 };

export const RECORDS_BUGS = [
  {
    name: 'listing without a beginning',
    about: 'a listing from 0 is told to begin again for removals that came before it',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/record/changes.lua',
        find: 'local known = math.max(since, began)',
        replace: 'local known = since',
      },
    ],
  },
  {
    name: 'forgotten by size',
    about: 'whether removals were dropped is guessed from how many are left',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/record/changes.lua',
        find: "local is_forgotten = known < index_fact(index, 'forgotten')",
        replace: `local oldest = tonumber(redis.call('ZRANGE', gone, 0, 0, 'WITHSCORES')[2]) or 0
local is_forgotten = redis.call('ZCARD', gone) >= 8 and known < oldest`,
      },
    ],
  },
  {
    name: 'foreign values share a revision',
    about: 'what another program writes is given a revision only when it is looked for',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lib/record.lua',
        find: '    note_revision(meta, last, digest, known[1])\n',
        replace: '',
      },
    ],
  },
];
