/** The same for workflows: bugs that systems with one writer have had. They are looked for where there are workflows. */
const worlds = { workflows: 3 };

export const WORKFLOW_BUGS = [
  {
    name: 'step without the lease',
    about: 'an orchestrator whose lease has expired continues until another begins',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lib/workflow.lua',
        find: 'if holder ~= lease_id then return nil, {2, holder} end',
        replace: '',
      },
    ],
  },
  {
    name: 'step without the epoch',
    about: 'a step has the epoch that its orchestrator believes in, whatever the workflow has',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/workflow/emit.lua',
        find: 'if known > 0 or epoch ~= current then',
        replace: 'if known > 0 then',
      },
      {
        file: 'store/redis/lua/workflow/update.lua',
        find: 'if current + 1 ~= following then',
        replace: 'if not current then',
      },
    ],
  },
  {
    name: 'settle without the fence',
    about: 'a processor settles an action that another processor has claimed since',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lib/claims.lua',
        find: 'return found == fence and tonumber(tries) or nil',
        replace: 'return found and tonumber(tries) or nil',
      },
    ],
  },
  {
    name: 'old epochs emitted anew',
    about: 'a new tenure emits what is unresolved with the epochs that it had',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lib/parking.lua',
        find: 'action[1] = epoch + i - 1\n',
        // in_hands_first sorts by action[1] and may have changed it: the record has the old epoch.
        replace: 'action[1] = parts_of(action[3])\n',
      },
    ],
  },
  {
    name: 'revived out of turn',
    about: 'a new tenure gives a revived action a lower epoch than the one that a processor has',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/workflow/begin.lua',
        find: '  claimed_first(id, actions)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'nothing emitted anew',
    about: 'actions of a dead orchestrator are not emitted again',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/workflow/begin.lua',
        find: "local actions = sort_by_epoch(redis.call('HGETALL', of('actions', id)))",
        replace: 'local actions = {}',
      },
    ],
  },
  {
    name: 'claim for ever',
    about: 'a handler believes that an action is its own until the store says otherwise',
    worlds,
    patches: [
      {
        file: 'workflow/attempt.js',
        find: 'return remainingMs(this.#claim, this.#claim, this.#clock);',
        replace: 'return Infinity;',
      },
    ],
  },
  {
    name: 'claim by the monotonic clock',
    about: 'a handler whose host slept does not know that another may have its action',
    worlds,
    patches: [
      {
        file: 'workflow/attempt.js',
        find: 'return remainingMs(this.#claim, this.#claim, this.#clock);',
        replace: 'return this.#claim.sentAtMs + this.#claim.validMs - this.#clock.monotonicMs();',
      },
    ],
  },
  {
    name: 'result beside its action',
    about: 'an action whose result is in is not done with: the next tenure emits it once more',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/workflow/settle.lua',
        find: "  redis.call('HDEL', of('actions', id), action_id)\n",
        replace: '',
      },
    ],
  },
  {
    name: 'handoff to two',
    about: 'who has handed a workflow over keeps its tenure until its successor begins',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/workflow/handoff.lua',
        find: "redis.call('SET', lease, successor, 'PX', window)\n",
        replace: '',
      },
      {
        file: 'store/redis/lua/workflow/handoff.lua',
        find: "'lease', successor, 'epoch', epoch, 'begun', '0'",
        replace: "'epoch', epoch",
      },
    ],
  },
  {
    name: 'epoch after the step',
    about:
      'an action is published first, and the epoch grows with whatever its orchestrator sends next',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/workflow/emit.lua',
        find: 'if known > 0 or epoch ~= current then',
        replace: 'if known > 0 or epoch < current then',
      },
      {
        file: 'store/redis/lua/workflow/emit.lua',
        find: "redis.call('HSET', of('facts', id), 'epoch', epoch, 'changed', now_ms)",
        replace: "redis.call('HSET', of('facts', id), 'epoch', ARGV[4], 'changed', now_ms)",
      },
      {
        file: 'store/redis/lua/workflow/update.lua',
        find: 'if current + 1 ~= following then',
        replace: 'if current + 1 > following then',
      },
    ],
  },
  {
    name: 'results by hints alone',
    about: 'an orchestrator that is not told of a result waits for it for ever',
    worlds: { workflows: 2 },
    patches: [
      {
        file: 'workflow/result-queue.js',
        find: 'const POLL_EVERY_MS = 2_000;',
        replace: 'const POLL_EVERY_MS = 1e9;',
      },
    ],
  },
  {
    name: 'step result not kept',
    about: 'the store says that a step is kept, and keeps nothing',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/run/keep.lua',
        find: "redis.call('HSET', of('steps', id), name, keep_text(ARGV[5], is_done, old_at or now_text, json))",
        replace: '',
      },
    ],
  },
  {
    name: 'sleep lost on restart',
    about: 'a function that comes to its sleep again does not wait for the rest of it',
    worlds,
    patches: [
      {
        file: 'workflow/workflow-run.js',
        find: 'const untilMs = atMs + ms;',
        replace: 'const untilMs = found ? 0 : atMs + ms;',
      },
    ],
  },
  {
    name: 'signal received twice',
    about: 'a signal that a line received is still there for the next line',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/run/keep.lua',
        find: "redis.call('HSET', of('signals', id), ARGV[8], at .. '\\n1\\n' .. of_name .. '\\nnull')",
        replace: '',
      },
    ],
  },
  {
    name: 'call emits a second action',
    about: 'the id of a call is new in each tenure',
    worlds,
    patches: [
      {
        file: 'workflow/workflow-run.js',
        find: 'return derivedUuid(this.#tenure.workflow, name);',
        replace: 'return derivedUuid(this.#tenure.workflow, name, this.#tenure.leaseId);',
      },
    ],
  },
  {
    name: 'function continued by two instances',
    about: 'steps are kept for whoever sends them, with or without the lease',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/run/keep.lua',
        find: 'if not current then return refused end',
        replace: 'current = current or 0',
      },
    ],
  },
];
