/**
 * Bugs that only a combination shows: two TTLs, two classes, an address that fails back, a name that is used again. They are
 * looked for where clients draw their configuration.
 */
const worlds = { kind: 'mixed', hours: 0.1 };

/** A client remembers what its own callers asked for, and waits no longer than that. */
const byHearsay = (of) => [
  {
    file: 'store/redis/verbs/leases.js',
    find: 'admit: (primary) => primary.admit(keyspace),',
    replace: `admit: (primary) => {
                const { quarantine } = primary;
                quarantine.heard ??= new Map();
                quarantine.asked = ${of};
                quarantine.heard.set(${of}, Math.max(quarantine.heard.get(${of}) ?? 0, call.ttlMs));
                return primary.admit(keyspace);
            },`,
  },
  {
    file: 'store/redis/quarantine.js',
    find: 'const untilMs = this.#forgotAtMs + maxTtls[keyspace] + QUARANTINE_MARGIN_MS;',
    replace:
      'const untilMs = this.#forgotAtMs + (this.heard?.get(this.asked) ?? 0) + QUARANTINE_MARGIN_MS;',
  },
];

export const MIXED_BUGS = [
  {
    name: 'quarantine by hearsay',
    about: 'a quarantine lasts as long as the longest TTL that this client has heard of',
    worlds,
    patches: byHearsay("''"),
  },
  {
    name: 'quarantine by class',
    about: 'classes that share keys have a quarantine each',
    worlds,
    patches: [
      ...byHearsay('call.leaseClass'),
      {
        file: 'lease/lease-request-queue.js',
        find: '#acquireCall({ timings }, timeoutMs) {\n        return {',
        replace:
          '#acquireCall({ timings, leaseClass }, timeoutMs) {\n        return { leaseClass: leaseClass.name,',
      },
    ],
  },
  {
    name: 'bound not checked',
    about:
      'a client with a longer bound than the others is let in, and holds for longer than they wait',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/server/examine.lua',
        find: "if is_other and not is_emptied then return {'BOUNDS', bounds} end",
        replace: '',
      },
    ],
  },
  {
    name: 'two names for one key',
    about:
      'a prefix may end in the name of a keyspace: one key has two markers, and two quarantines',
    worlds,
    patches: [
      {
        file: 'store/port/prefix.js',
        find: 'if (reserved !== undefined)',
        replace: "if (reserved === 'never')",
      },
    ],
  },
  {
    name: 'old era adopted again',
    about: 'an address that fails back leads to old data, and nobody minds',
    worlds,
    patches: [
      {
        file: 'store/redis/quarantine.js',
        find: "if (found === '' && remembered.hasLeft(era)) {",
        replace: "if (found === 'never' && remembered.hasLeft(era)) {",
      },
      {
        file: 'store/redis/lua/server/examine.lua',
        find: 'local is_older = looks < tonumber(ARGV[5])',
        replace: 'local is_older = false',
      },
    ],
  },
  {
    name: 'clock that was ahead',
    about: 'a store whose clock was set back makes newcomers wait for as long as it was ahead',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/server/examine.lua',
        find: 'if since > now then since = now end',
        replace: '',
      },
    ],
  },
  {
    name: 'renewal shortens',
    about: 'a late renewal of an earlier tenure shortens the newer lease of the same holder',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lease/renew.lua',
        find: "if redis.call('PTTL', lease) < ttl then redis.call('PEXPIRE', lease, ARGV[1]) end",
        replace: "redis.call('PEXPIRE', lease, ARGV[1])",
      },
    ],
  },
  {
    name: 'revoke without a fence',
    about: 'a revocation that is carried out late hits the next holder of the key',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lease/revoke.lua',
        find: ' or fence_now ~= ARGV[4]',
        replace: '',
      },
    ],
  },
  {
    name: 'frozen waiter swallows the hint',
    about: 'the waiter that is told of a free key is frozen, and no other one is told',
    worlds,
    patches: [
      {
        file: 'lease/wake-watch.js',
        find: 'this.#timers.schedule(freed, this.#clock.monotonicMs() + inMs + WAVE_MS);',
        replace: 'void freed;',
      },
    ],
  },
  {
    name: 'pool with one slot more',
    about: 'a pool counts its slots from none, and so has one more than it was asked for',
    worlds,
    patches: [
      {
        file: 'lease/pool/pool.js',
        find: 'isCount(slots) ? numbered(slots) : slots;',
        replace: 'isCount(slots) ? numbered(slots + 1) : slots;',
      },
    ],
  },
  {
    name: 'leader until it has released',
    about:
      'a leader counts as one until its release is answered, and the next one leads before that',
    worlds,
    patches: [
      {
        file: 'lease/election.js',
        find: "return this.#state === 'leading' && this.#lease?.isHeld() === true;",
        replace: "return this.#state === 'leading' || this.#state === 'stepping down';",
      },
    ],
  },
  {
    name: 'job that begins unrecorded',
    about: 'the start of a job is not on record: after a crash its period has another run',
    worlds,
    patches: [
      {
        file: 'lease/once.js',
        find: 'const later = await recordStart(rt, job, lease, run);',
        replace: 'const later = null; void recordStart;',
      },
    ],
  },
  {
    name: 'transfer without a fence',
    about: 'a transfer that is carried out twice hands over the next lease of its holder, too',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lease/transfer.lua',
        find: ' or (recorded and digits(recorded) ~= fence)',
        replace: '',
      },
    ],
  },
  {
    name: 'maxHold from the last renewal',
    about: 'each renewal begins maxHold anew',
    worlds,
    patches: [
      {
        file: 'lease/tenure.js',
        find: 'return this.acquiredAtMs + (this.policy.maxHoldMs ?? Number.POSITIVE_INFINITY);',
        replace:
          'return this.#rt.clock.monotonicMs() + (this.policy.maxHoldMs ?? Number.POSITIVE_INFINITY);',
      },
    ],
  },
  {
    name: 'kept key that is not told of',
    about: 'no waiter is woken when the time of keepFor is over',
    worlds,
    patches: [
      {
        file: 'lease/release.js',
        find: 'this.#requests.watchKept(tenure.storeKey, keptForMs);',
        replace: '',
      },
    ],
  },
  {
    name: 'guard of a quarter',
    about: 'a lease ends here a quarter of its guard early: too little for clocks that drift apart',
    worlds,
    patches: [
      {
        file: 'lease/timings.js',
        find: 'validMs: ttlMs - guardMs,',
        replace: 'validMs: ttlMs - guardMs / 4,',
      },
    ],
  },
  {
    name: 'hints without a ping',
    about: 'a connection that listens and has become silent is kept, and no hint comes any more',
    worlds,
    patches: [
      {
        file: 'store/redis/client/pubsub-connection.js',
        find: "this.#connection.send('ping', ['PING'], SIGNAL_TIMEOUT_MS).catch(() => { });",
        replace: '',
      },
    ],
  },
  {
    name: 'full disk taken for a renewal',
    about: 'a renewal that a full disk refuses to write counts as one',
    worlds,
    patches: [
      {
        file: 'store/redis/lua/lease/renew.lua',
        find: "then redis.call('PEXPIRE', lease, ARGV[1]) end",
        replace: "then redis.pcall('PEXPIRE', lease, ARGV[1]) end",
      },
    ],
  },
];
