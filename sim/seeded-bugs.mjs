/**
 * Bugs that lease libraries have had, put back into a copy of Holdfast one at a time: a simulator that does not find them
 * proves nothing. Each is a change of the built code, so that the code itself has no switch for any of them. A text that is not
 * found exactly once stops the gate: then the code has changed, and the bug has to be put in again.
 */
export const SEEDED_BUGS = [
  {
    name: 'deadline from the reply',
    about: 'the TTL counts from when the answer came, not from when the request was sent',
    patches: [
      {
        file: 'lease/lease-request-queue.js',
        find: '(reply) => ({ reply, sent })',
        replace: '(reply) => ({ reply, sent: confirmationNow(this.#clock) })',
      },
      {
        file: 'lease/lease-request-queue.js',
        find: 'return { reply: reply, sent };',
        replace: 'return { reply, sent: confirmationNow(this.#clock) };',
      },
      {
        file: 'lease/renewer.js',
        find: 'tenure.confirm(sent, nowMs);',
        replace: 'tenure.confirm(confirmationNow(clock), nowMs);',
      },
    ],
  },
  {
    name: 'no local deadline',
    about: 'a holder believes that it holds until the store says otherwise',
    patches: [
      {
        file: 'lease/tenure.js',
        find: 'if (nowMs < this.deadlineMs)\n            return true;',
        replace: 'if (nowMs < Infinity)\n            return true;',
      },
      {
        file: 'lease/renewer.js',
        find: 'if (tenure.dueAtMs <= nowMs)',
        replace: 'if (tenure.dueAtMs === nowMs + 1e9)',
      },
    ],
  },
  {
    name: 'expiry by a timer',
    about: 'the end of a lease is what a timer says; a check does not read the clock',
    patches: [
      {
        file: 'lease/tenure.js',
        find: 'if (nowMs < this.deadlineMs)\n            return true;',
        replace: 'if (nowMs < Infinity)\n            return true;',
      },
    ],
  },
  {
    name: 'delete all at start',
    about: 'an instance that starts frees every lease, taking them for leftovers of its last life',
    patches: [
      {
        file: 'fleet/member/lease-manager.js',
        find: '        void this.#listen();\n',
        replace: `        void this.#listen();
        const call = { timeoutMs: 5_000 };
        for (const id of this.#source.ids()) {
            const key = 'poll:lease:' + id;
            const [found] = await this.#rt.store.leases.read([key], call).catch(() => []);
            if (found?.kind === 'held')
                await this.#rt.store.leases.release([{ ...found, key }], call).catch(() => {});
        }
`,
      },
    ],
  },
  {
    name: 'deadline by the wall clock',
    about: 'a clock that is set back makes leases last longer',
    patches: [
      {
        file: 'lease/tenure.js',
        find: 'const endsMs = endsAtMs(this.#confirmed, timings);',
        replace:
          'const endsMs = this.#rt.clock.monotonicMs() + this.#confirmed.sentAtWallMs + timings.validMs - this.#rt.clock.wallMs();',
      },
      {
        file: 'core/validity.js',
        find: 'return nowMs - since.sentAtMs + (aheadMs > toleratedMs ? aheadMs : 0);',
        replace: 'return clock.wallMs() - since.sentAtWallMs + aheadMs * toleratedMs * 0;',
      },
      {
        file: 'core/validity.js',
        find: 'return clock.wallMs() - sentAtWallMs - (nowMs - sentAtMs);',
        replace: 'return (sentAtWallMs + nowMs + sentAtMs) * 0;',
      },
    ],
  },
  {
    name: 'monotonic clock only',
    about: 'a machine that slept does not know that its leases have expired',
    patches: [
      {
        file: 'core/validity.js',
        find: 'return clock.wallMs() - sentAtWallMs - (nowMs - sentAtMs);',
        replace: 'return (sentAtWallMs + nowMs + sentAtMs) * 0;',
      },
    ],
  },
  {
    name: 'no margin',
    about: 'a lease is used up to its last moment, although clocks do not run alike',
    patches: [
      {
        file: 'lease/timings.js',
        find: 'validMs: ttlMs - guardMs',
        replace: 'validMs: ttlMs',
      },
    ],
  },
  {
    name: 'no fencing at the sink',
    about: 'what is written to takes whatever comes',
    patches: [
      {
        file: 'testing/sim/device.js',
        find: 'const isAccepted = write.fence >=',
        replace: 'const isAccepted = true || write.fence >=',
      },
    ],
  },
  {
    name: 'no fencing of records',
    about: 'results are written whatever fence comes with them',
    patches: [
      {
        file: 'store/redis/lua/lib/record.lua',
        find: "if fence ~= '' and tonumber(fence) < tonumber(seen)",
        replace: "if fence == 'never' and tonumber(fence) < tonumber(seen)",
      },
    ],
  },
  {
    name: 'fences from a counter',
    about: 'a store that lost its data counts from the beginning again',
    patches: [
      {
        file: 'store/redis/lua/lib/fences.lua',
        find: 'local fence = math.max(previous + 1, now, floor)',
        replace: 'now = 0; local fence = math.max(previous + 1, floor)',
      },
      {
        file: 'store/redis/lua/lib/plain-grants.lua',
        find: 'if #ARGV == #KEYS * 2 + 1 and',
        replace: 'if false and',
      },
    ],
  },
  {
    name: 'plain grants in any era',
    about:
      'a request without options is granted by a store that has forgotten since it was examined',
    patches: [
      {
        file: 'store/redis/lua/lib/plain-grants.lua',
        find: "(ARGV[1] == '' or redis.call('HGET', KEYS[1], 'era') == ARGV[1])",
        replace: "(ARGV[1] ~= 'none')",
      },
    ],
  },
  {
    name: 'plain grants by the clock alone',
    about: 'a request without options gets the time as its fence, even if the last fence is higher',
    worlds: { kind: 'mixed', hours: 0.1 },
    patches: [
      {
        file: 'store/redis/lua/lib/plain-grants.lua',
        find: 'and old < now_text and',
        replace: 'and',
      },
    ],
  },
  {
    name: 'plain release by name alone',
    about: 'a release that is late ends a newer tenure of the same holder, as no fence is compared',
    patches: [
      {
        file: 'store/redis/lua/lib/plain-releases.lua',
        find: ' or found[2] ~= ARGV[i * 2] then break end',
        replace: ' then break end',
      },
    ],
  },
  {
    name: 'no quarantine',
    about: 'a store that may have forgotten grants at once',
    patches: [
      {
        file: 'store/redis/quarantine.js',
        find: "if (mode === 'off')\n            return 0;",
        replace: 'return 0;',
      },
    ],
  },
  {
    name: 'release without a check',
    about: 'a release deletes the key even if another holder has it',
    patches: [
      {
        file: 'store/redis/lua/lease/release.lua',
        find: 'if current ~= holder or (recorded and recorded ~= fence and not waited) then',
        replace: 'if not current then',
      },
    ],
  },
  {
    name: 'renewal without a check',
    about: 'a renewal extends the lease of another holder, and takes it for its own',
    patches: [
      {
        file: 'store/redis/lua/lease/renew.lua',
        find: 'if current == ARGV[i + 2] then',
        replace: "if current and type(current) ~= 'table' then",
      },
    ],
  },
  {
    name: 'release by name alone',
    about: 'a late release ends a newer tenure of the same holder',
    patches: [
      {
        file: 'store/redis/lua/lease/release.lua',
        find: 'if current ~= holder or (recorded and recorded ~= fence and not waited) then',
        replace: 'if current ~= holder then',
      },
    ],
  },
  {
    name: 'refresh with an old fence',
    about:
      'a holder that the store names, after a failover too, gets the fence that stands there and no new one',
    patches: [
      {
        file: 'store/redis/lua/lease/acquire.lua',
        find: 'if presented == 0 or tonumber(digits(recorded)) ~= presented then fence, problem = mint(record, now, now_text, floor) end',
        replace:
          'fence = tonumber(digits(recorded)) or 0\n  if not recorded then fence, problem = mint(record, now, now_text, floor) end',
      },
    ],
  },
  {
    name: 'works on while it hands over',
    about: 'the store is told that a lease is let go before the work under it has stopped',
    patches: [
      {
        file: 'lease/release.js',
        find: 'if (settled === undefined)\n            return this.#handIn(tenure);',
        replace: 'if (settled !== null)\n            return this.#handIn(tenure);',
      },
      {
        file: 'lease/tenure.js',
        find: "this.#requests = 'handed-in';\n        this.#endedAtMs = this.#rt.clock.monotonicMs();\n        this.#controller?.abort(this.lostError());",
        replace: '',
      },
    ],
  },
  {
    name: 'handed over into a quarantine',
    about: 'a successor is refused what it was handed, because the store makes no new grants',
    patches: [
      {
        file: 'store/redis/verbs/leases.js',
        find: 'if (barred.length === 0)\n            return;',
        replace: 'if (barred.length >= 0)\n            return;',
      },
    ],
  },
  {
    name: 'claims whatever is in its name',
    about:
      'in a quarantine the store grants a holder what it names that holder for, from before the loss, too',
    patches: [
      {
        file: 'store/redis/lua/lease/claim.lua',
        find: 'if current and current ~= holder then return false end',
        replace: 'if current ~= holder then return false end',
      },
      {
        file: 'store/redis/lua/lease/claim.lua',
        find: "if type(offered) ~= 'string' or type(recorded) ~= 'string' or digits(recorded) ~= offered then return false end",
        replace: '',
      },
    ],
  },
  {
    name: 'registered after its handler',
    about: 'a poll counts as under way only once its handler has awaited something',
    patches: [
      {
        file: 'fleet/poll/poll-scheduler.js',
        find: 'void this.#poll(polled, target, run).then(() => {',
        replace:
          'const polling = this.#poll(polled, target, run);\n        run.isKnown = true;\n        void polling.then(() => {',
      },
      {
        file: 'fleet/poll/poll-scheduler.js',
        find: '        return run.settled;',
        replace: '        return run.isKnown ? run.settled : Promise.resolve();',
      },
    ],
  },
];
