/** The same for intents: bugs that interfaces which promise to start a thing once have had. They are looked for where there are clients. */
const worlds = { intents: 6 };

export const INTENT_BUGS = [
  {
    name: 'looked up, then made',
    about: 'whether there is a session is asked first, and one is made in a second request',
    worlds,
    patches: [
      {
        file: 'store/redis/verbs/intents.js',
        find: "const reply = (await this.#work.run(scripts['intent/start'], args, call));",
        replace: `const lookup = ['HMGET', this.#work.keys.intents + 'keys', ...keys];
        const led = await this.#work.send('lookup', lookup, call);
        if (led.every((id) => id === null))
            args.push('');
        const reply = (await this.#work.run(scripts['intent/start'], args, call));`,
      },
      {
        file: 'store/redis/lua/intent/start.lua',
        find: 'for i = 11, #ARGV do keys[i - 10] = ARGV[i] end',
        replace: "for i = 11, #ARGV do if ARGV[i] ~= '' then keys[i - 10] = ARGV[i] end end",
      },
      {
        file: 'store/redis/lua/intent/start.lua',
        find: "local led = redis.call('HMGET'",
        replace: "local led = ARGV[#ARGV] == '' and {} or redis.call('HMGET'",
      },
    ],
  },
  {
    name: 'replayed after the end',
    about: 'a key leads to its session permanently, and a start finds a session that has ended',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lib/session.lua',
        find: "redis.call('HDEL', INTENT .. 'keys', key)",
        replace: 'at = at',
      },
      {
        file: 'store/redis/lua/intent/start.lua',
        find: "if facts and facts[2] ~= 'ENDED' then",
        replace: 'if facts then',
      },
    ],
  },
  {
    name: 'under the current secret only',
    about:
      'a new session is found by the current secret; who knows the old one only starts another',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/intent/start.lua',
        find: 'for n = 2, #keys do add_key(id, keys[n]) end\n',
        replace: '',
      },
    ],
  },
  {
    name: 'old secret forgotten',
    about: 'after a change of secrets, what was started under the old one is not looked for',
    worlds,
    patches: [
      {
        file: 'intents/intents.js',
        find: 'keys: secrets.map(',
        replace: 'keys: secrets.slice(0, 1).map(',
      },
    ],
  },
  {
    name: 'a secret for each process',
    about: 'without a configured secret, each process makes one as it starts',
    worlds,
    patches: [
      {
        file: 'intents/secret-set.js',
        find: 'await store.records.put(COLLECTION, [{ id: ID, value, ifRevision }], CALL)',
        replace: "[{ kind: 'written', revision: ifRevision, store }]",
      },
    ],
  },
  {
    name: 'secret asked for once',
    about: 'who knows a secret does not ask for it again when the store may have lost it',
    worlds,
    patches: [
      {
        file: 'intents/secret-set.js',
        find: "rt.events.on('store.disconnected', askAgain);",
        replace: ';',
      },
      {
        file: 'intents/start-recovery-loop.js',
        find: '            await this.#secrets.refresh();\n',
        replace: '',
      },
    ],
  },
  {
    name: 'fields run together',
    about: 'an idempotency key is made from text that does not show where a field ends',
    worlds,
    patches: [
      {
        file: 'intents/idempotency.js',
        find: 'const text = encodeFields([DOMAIN, tenant, ...identity]);',
        replace: "const text = [DOMAIN, tenant, ...identity].join(':');",
      },
    ],
  },
  {
    name: 'told to start afterwards',
    about: 'a session is made, and put into the stream of starts by a second request',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/intent/start.lua',
        find: "push(stream, id, ARGV[7] .. ' ' .. ARGV[8])\n",
        replace: '',
      },
      {
        file: 'store/redis/verbs/intents.js',
        find: 'const [, atMs] = reply;',
        replace: `const entry = ['intent:start:' + kind, id, String(priority), entryOf(id)];
        await this.#work.run(scripts['stream/append'], entry, call);
        const [, atMs] = reply;`,
      },
    ],
  },
  {
    name: 'never swept',
    about: 'a session whose start the stream has lost waits for ever',
    worlds,
    patches: [
      {
        file: 'intents/start-recovery-loop.js',
        find: 'await store.intents.republish(ids, CALL)',
        replace: '[]',
      },
    ],
  },
  {
    name: 'one stop for all',
    about: 'a client that stops a session stops it for all clients',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/intent/stop.lua',
        find: 'if tonumber(facts[6]) > 0 then return {1, facts} end\n',
        replace: '',
      },
    ],
  },
  {
    name: 'counted at every start',
    about: 'a client that asks twice counts twice, and one stop of it is not enough',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/intent/start.lua',
        find: 'if not facts[11] then',
        replace: 'if facts then',
      },
    ],
  },
  {
    name: 'stop without looking',
    about: 'a session is stopped whatever state it is in, also once it has ended',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/intent/stop.lua',
        find: "if state == 'STOPPING' or state == 'ENDED' then return {1, facts} end\n",
        replace: '',
      },
    ],
  },
  {
    name: 'change without the revision',
    about: 'a worker says what a session is, whatever has become of it since it looked',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/intent/advance.lua',
        find: "if facts[2] == 'ENDED' or is_another then",
        replace: "if facts[2] == 'ENDED' then",
      },
    ],
  },
  {
    name: 'started for who has gone',
    about:
      'an interface that was frozen starts what a client wanted that has hung up, and was served elsewhere',
    worlds,
    patches: [
      {
        file: 'intents/intents.js',
        find: 'if (!signal.aborted)\n            return;',
        replace: 'return;',
      },
    ],
  },
  {
    name: 'takes any kind',
    about: 'a worker reads the starts of kinds that it was not told to take, and runs them',
    worlds,
    patches: [
      {
        file: 'worker/worker-options.js',
        find: 'const names = wanted === undefined ?',
        replace: 'const names = true ?',
      },
    ],
  },
  {
    name: 'the same of another kind',
    about: 'the kind is no part of what makes two starts the same request',
    worlds,
    patches: [
      {
        file: 'intents/declared-start.js',
        find: "identity: ['start', name, same],",
        replace: "identity: ['start', same],",
      },
    ],
  },
  {
    name: 'params of another session',
    about: 'a pipeline is given the params that its worker gave to the one before',
    worlds,
    patches: [
      {
        file: 'worker/pipelines/function.js',
        find: 'const { id, kind, target: key, tenant, params } = session;',
        replace: `const { id, kind, target: key, tenant } = session;
        const params = callWithParams.last ?? session.params;
        callWithParams.last = session.params;`,
      },
    ],
  },
  {
    name: 'one try too many',
    about: 'a session is tried again after its last try has failed',
    worlds,
    patches: [
      {
        file: 'worker/session-run.js',
        find: 'losses + failures < tries',
        replace: 'losses + failures <= tries',
      },
    ],
  },
];
