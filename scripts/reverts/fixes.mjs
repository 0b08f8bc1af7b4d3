/**
 * The defects that once gave a key two holders, lost work or said something false, and how to bring
 * each of them back. `npm run reverts` does that, and shows what notices.
 *
 * `model` names a mistake of `testing/model/mistakes.ts`, `sim` a bug of `sim/*-bugs.mjs`; `unit` is
 * a change of one source file, and the unit tests that fail with it.
 */

/** Two holders of one key, leases lost without need, and requests executed late. */
const OF_LEASES = [
  {
    item: '1.1',
    fix: 'a quarantine lasts as long as a bound that every client knows',
    model: 'QUARANTINE_BY_OWN_TTL',
    sim: 'quarantine by hearsay',
    unit: {
      file: 'src/store/sqlite/file/store-clock.ts',
      find: 'this.#since + this.maxTtls[keyspace] + QUARANTINE_MARGIN_MS - nowMs',
      replace: 'this.#since + QUARANTINE_MARGIN_MS - nowMs',
      tests: ['test/store/sqlite-quarantine.test.ts', 'test/store/sqlite.test.ts'],
    },
  },
  {
    item: '1.1',
    fix: 'a client with another bound is refused',
    sim: 'bound not checked',
    unit: {
      file: 'src/store/sqlite/file/store-clock.ts',
      find: 'if (!hasLost) this.#checkBounds(connection);',
      replace: '',
      tests: ['test/store/sqlite-quarantine.test.ts', 'test/store/sqlite.test.ts'],
    },
  },
  {
    item: '1.1',
    fix: 'a client that was refused does not put its shorter bound into a store that loses its data',
    unit: {
      file: 'src/store/redis/quarantine.ts',
      find: "      mayCreate && !isRefused ? '1' : '',",
      replace: "      mayCreate ? '1' : '',",
      tests: ['test/store/redis-quarantine.test.ts'],
    },
  },
  {
    item: '1.1',
    fix: 'an acquire names the era that its client has examined',
    model: 'ERA_NOT_COMPARED',
    sim: 'plain grants in any era',
    unit: {
      file: 'src/store/redis/lua/lease/acquire.lua',
      find: "if is_other_era(ARGV[1]) then return 'ERA' end",
      replace: '',
      tests: ['test/store/redis-quarantine.test.ts', 'test/testing/sim-redis-conformance.test.ts'],
    },
  },
  {
    item: '1.2',
    fix: 'classes that share keys share a quarantine',
    sim: 'quarantine by class',
  },
  {
    item: '1.2',
    fix: 'no two prefixes name one key',
    sim: 'two names for one key',
    unit: {
      file: 'src/store/port/prefix.ts',
      find: 'RESERVED.has(word)',
      replace: "RESERVED.has(word) && word === ''",
      tests: ['test/store/prefix.test.ts'],
    },
  },
  {
    item: '1.3',
    fix: 'an era that a client has left is not adopted again',
    model: 'FAILBACK_UNNOTICED',
    sim: 'old era adopted again',
    unit: {
      file: 'src/store/sqlite/file/store-clock.ts',
      find: '} else if (row[5] !== this.#era && this.#left.has(row[5])) {',
      replace: '} else if (false as boolean) {',
      tests: ['test/store/sqlite-quarantine.test.ts', 'test/store/sqlite.test.ts'],
    },
  },
  {
    item: '1.3',
    fix: 'data that went back in time under a running store begins a quarantine',
    unit: {
      file: 'src/store/redis/lua/server/examine.lua',
      find: 'elseif is_older then',
      replace: 'elseif false then',
      tests: ['test/store/redis-quarantine.test.ts'],
    },
  },
  {
    item: '1.4',
    fix: 'a late renewal shortens no newer lease',
    model: 'LATE_RENEWAL_SHORTENS',
    sim: 'renewal shortens',
    unit: {
      file: 'src/store/redis/lua/lease/renew.lua',
      find: "if redis.call('PTTL', lease) < ttl then redis.call('PEXPIRE', lease, ARGV[1]) end",
      replace: "redis.call('PEXPIRE', lease, ARGV[1])",
      tests: ['test/testing/sim-redis-conformance.test.ts'],
    },
  },
  {
    item: '1.4',
    fix: 'a late acquire of the same holder shortens no newer lease',
    unit: {
      file: 'src/store/redis/lua/lease/acquire.lua',
      find: "if fence and redis.call('PTTL', lease) < tonumber(ttl) then redis",
      replace: 'if fence then redis',
      tests: ['test/testing/sim-redis-conformance.test.ts'],
    },
  },
  {
    item: '1.5',
    fix: 'a SQLite file with two names is refused',
    unit: {
      file: 'src/store/sqlite/file/file-connection.ts',
      find: 'if (count > 1) throw',
      replace: 'if (count > 99) throw',
      tests: ['test/store/sqlite.test.ts', 'test/store/sqlite-quarantine.test.ts'],
    },
  },
  {
    item: '1.5',
    fix: 'a log that was removed is noticed',
    unit: {
      file: 'src/store/sqlite/file/file-connection.ts',
      find: 'if (logMark(path) !== this.#log) throw',
      replace: 'if (false as boolean) throw',
      tests: ['test/store/sqlite.test.ts', 'test/store/sqlite-quarantine.test.ts'],
    },
  },
  {
    item: '1.5',
    fix: 'a process in a time namespace counts by the clock of the host',
    unit: {
      file: 'src/store/sqlite/file/file-connection.ts',
      find: 'return this.#clock.monotonicMs() - this.#options.host.clockAheadMs;',
      replace: 'return this.#clock.monotonicMs();',
      tests: ['test/store/sqlite.test.ts', 'test/store/sqlite-quarantine.test.ts'],
    },
  },
  {
    item: '1.5',
    fix: 'fences of one process are never equal',
    unit: {
      file: 'src/store/fence-time.ts',
      find: 'Math.max(nowUs, lastUs + 1)',
      replace: 'nowUs',
      tests: ['test/store/fence-time.test.ts'],
    },
  },
  {
    item: '1.6',
    fix: 'a revocation names the lease that it ends',
    sim: 'revoke without a fence',
  },
  {
    item: '1.7',
    fix: 'a release from inside a poll handler waits for the handler',
    unit: {
      file: 'src/fleet/poll/poll-scheduler.ts',
      find: `    polled.run = run;
    polled.startedAtMs`,
      replace: `    this.#rt.clock.soon(() => { if (!run.signal.aborted) polled.run = run; });
    polled.startedAtMs`,
      tests: ['test/fleet/poll/poller.test.ts', 'test/fleet/member/lease-manager.test.ts'],
    },
  },
  {
    item: '1.7',
    fix: 'a poll asks its lease right before a request is written, on each hop and retry',
    unit: {
      file: 'src/fleet/poll/http/http-request.ts',
      find: `  try {
    assertHeld();
    request.end();`,
      replace: `  try {
    request.end();`,
      tests: ['test/fleet/poll/http-held.test.ts'],
    },
  },
  {
    item: '1.8',
    fix: 'the rule of the two clocks: a clock that was set back proves nothing',
    sim: 'monotonic clock only',
    unit: {
      file: 'src/core/validity.ts',
      find: 'if (aheadMs < -validity.jumpMs) return 0;',
      replace: '',
      tests: ['test/core/validity.test.ts'],
    },
  },
  {
    item: '1.8',
    fix: 'the rule of the two clocks: a host that slept counts the sleep',
    sim: 'monotonic clock only',
    unit: {
      file: 'src/core/validity.ts',
      find: '(aheadMs > toleratedMs ? aheadMs : 0)',
      replace: '0',
      tests: ['test/core/validity.test.ts'],
    },
  },
  {
    item: '1.9',
    fix: 'a command that was given up on is not written late',
    unit: {
      file: 'src/store/redis/client/socket-connection.ts',
      find: 'isOver = deadline?.isOver() ?? false;',
      replace: 'isOver = false;',
      tests: ['test/store/redis-wire.test.ts', 'test/store/redis-connection.test.ts'],
    },
  },
  {
    item: '1.12',
    fix: 'the next waiter is woken when the first does not come',
    sim: 'frozen waiter swallows the hint',
  },
  {
    item: '1.13',
    fix: 'a caller with little time left does not end a fresh connection',
    unit: {
      file: 'src/store/redis/client/connection.ts',
      find: 'const isSoon = nowMs - sentMs < MIN_UNANSWERED_MS && this.#link === link;',
      replace: 'const isSoon = false as boolean;',
      tests: ['test/store/redis-connection.test.ts'],
    },
  },
  {
    item: '1.13',
    fix: 'a foreign value in the place of a fence is left alone, and fails one key',
    unit: {
      file: 'src/store/redis/lua/lib/fences.lua',
      find: "if not previous or previous >= MAX_NUMBER then return nil, 'FOREIGN fence record' end",
      replace: 'previous = previous or 0',
      tests: ['test/store/redis-foreign.test.ts', 'test/testing/sim-redis-conformance.test.ts'],
    },
  },
  {
    item: '1.13',
    fix: 'the fence record of one key is no lease of another',
    unit: {
      file: 'src/store/redis/lua/lib/siblings.lua',
      find: "return what .. ':{' .. lease .. '}'",
      replace: "return lease .. ':' .. what",
      tests: ['test/store/redis-leases.test.ts', 'test/testing/sim-redis-conformance.test.ts'],
    },
  },
  {
    item: '1.14',
    fix: 'a server clock that was ahead and is set back locks nobody out',
    sim: 'clock that was ahead',
    unit: {
      file: 'src/store/redis/lua/server/examine.lua',
      find: 'if since > now then since = now end',
      replace: '',
      tests: ['test/store/redis-quarantine.test.ts'],
    },
  },
  {
    item: '1.14',
    fix: 'nothing is handed to a member that may not take it',
    sim: 'handed over into a quarantine',
    unit: {
      file: 'src/fleet/member/lease-manager.ts',
      find: '({ isForeign, isDraining }) => !isForeign && !isDraining,',
      replace: '() => true,',
      tests: ['test/fleet/member/draining.test.ts', 'test/fleet/member/fleet.test.ts'],
    },
  },
  {
    item: '1.15',
    fix: 'one bad request does not stop the writes of a SQLite file',
    unit: {
      file: 'src/store/sqlite/file/failures.ts',
      find: `  if (error instanceof HoldfastError) return true;
  const code = resultCode(error);
  if (code !== 0) return OF_THE_REQUEST.has(code);`,
      replace: `  const code = resultCode(error);
  if (code !== 0) return false;`,
      tests: ['test/store/sqlite.test.ts', 'test/store/sqlite-lock-queue.test.ts'],
    },
  },
  {
    item: '1.15',
    fix: 'a named holder whose lease was lost may acquire again once its work has ended',
    unit: {
      file: 'src/lease/named-holder-set.ts',
      find: 'if (tenure === undefined || tenure.workLeftMs() > 0) return tenure;',
      replace: 'if (tenure === undefined || tenure.state !== null) return tenure;',
      tests: ['test/lease/leases.test.ts', 'test/lease/tenure.test.ts'],
    },
  },
  {
    item: '1.16',
    fix: 'leases that a late reply granted are released in batches',
    unit: {
      file: 'src/lease/orphaned-grant-queue.ts',
      find: 'i += BATCH) {\n      const batch = all.slice(i, i + BATCH);',
      replace: 'i += 1) {\n      const batch = all.slice(i, i + 1);',
      tests: ['test/lease/orphaned-grants.test.ts'],
    },
  },
];

/** Work that is lost or done twice, and what is said falsely. */
const OF_WORK = [
  {
    item: '2.1',
    fix: 'a listing of records has its own beginning, so that every target is seen',
    sim: 'listing without a beginning',
  },
  {
    item: '2.1',
    fix: 'no removal is missed',
    sim: 'forgotten by size',
    unit: {
      file: 'src/store/change-reader.ts',
      find: 'for (const id of [...this.#taker.known()]) if (!listed.has(id)) this.#taker.drop(id);',
      replace: '',
      tests: ['test/store/changes-model.test.ts', 'test/fleet/targets/target-watch.test.ts'],
    },
  },
  {
    item: '2.1',
    fix: 'a refresh that gives up says so',
    unit: {
      file: 'src/store/change-reader.ts',
      find: 'throw this.#outrun();',
      replace: 'void this.#outrun;',
      tests: ['test/fleet/targets/target-watch.test.ts', 'test/store/changes-model.test.ts'],
    },
  },
  {
    item: '2.2',
    fix: 'a target that left the list is released before it is forgotten',
    unit: {
      file: 'src/fleet/plan/decide.ts',
      find: "      if (target.state === 'owned') release.push(target);\n      else if (target.state === 'watched') drop.push(target);",
      replace: '      drop.push(target);',
      tests: ['test/fleet/plan/decide.test.ts'],
    },
  },
  {
    item: '2.2',
    fix: 'a released target goes to a healthy instance',
    unit: {
      file: 'src/fleet/member/lease-manager.ts',
      find: 'if (successor === undefined) return',
      replace: 'if (successor !== null) return',
      tests: ['test/fleet/member/lease-manager.test.ts'],
    },
  },
  {
    item: '2.2',
    fix: 'a changed interval counts at once',
    unit: {
      file: 'src/fleet/poll/poll-scheduler.ts',
      find: 'if (this.#due.has(polled)) this.#due.schedule(polled, this.#nextMs(polled));',
      replace: '',
      tests: ['test/fleet/poll/poller.test.ts', 'test/fleet/poll/poll-pace.test.ts'],
    },
  },
  {
    item: '2.2',
    fix: 'an invalid interval in a list of targets is refused',
    unit: {
      file: 'src/fleet/targets/target-source.ts',
      find: 'const everyMs = valid(target, readEveryMs(target));',
      replace: 'const everyMs = target.everyMs as number | undefined;',
      tests: ['test/fleet/poll/poller.test.ts', 'test/fleet/run/runner.test.ts'],
    },
  },
  {
    item: '2.2',
    fix: 'the result of a removed target is removed',
    unit: {
      file: 'src/fleet/poll/result-writer.ts',
      find: 'this.#wait(target, { fence, result: null, recent: null });',
      replace: '',
      tests: ['test/fleet/poll/result-writer.test.ts'],
    },
  },
  {
    item: '2.3',
    fix: 'values that another program writes have revisions of their own',
    sim: 'foreign values share a revision',
  },
  {
    item: '2.4',
    fix: 'a start that reached a frozen API is not accepted after its client has gone',
    sim: 'started for who has gone',
    unit: {
      file: 'src/intents/intents.ts',
      find: 'if (!signal.aborted) return;',
      replace: 'if (signal !== null) return;',
      tests: ['test/intents/intents.test.ts', 'test/server/intents.test.ts'],
    },
  },
  {
    item: '2.4',
    fix: 'a failure is counted before the next try',
    sim: 'a failure that is not counted',
    unit: {
      file: 'src/worker/session-run.ts',
      find: '      this.#uncounted = failures;\n      await this.#countFailure(this.#stop.signal);',
      replace: '      this.#uncounted = null;',
      tests: ['test/worker/kinds.test.ts', 'test/worker/stopping.test.ts'],
    },
  },
  {
    item: '2.4',
    fix: 'a pipeline that has ended stays ended, whatever stops its worker afterwards',
    sim: 'left after its end',
    unit: {
      file: 'src/worker/session-run.ts',
      find: 'const cause = tried === null ? this.#cause : tried.cause;',
      replace: 'const cause = this.#cause;',
      tests: ['test/worker/kinds.test.ts', 'test/worker/stopping.test.ts'],
    },
  },
  {
    item: '2.4',
    fix: 'STOPPING is written before the leases are released',
    sim: 'free before the store knows',
    unit: {
      file: 'src/worker/session-run.ts',
      find: "if (this.#running !== null) await this.#advance('STOPPING', change);",
      replace: '',
      tests: ['test/worker/session-run.test.ts', 'test/worker/stopping.test.ts'],
    },
  },
  {
    item: '2.5',
    fix: 'a revived action goes out in turn',
    sim: 'revived out of turn',
  },
  {
    item: '2.5',
    fix: 'a result is handed out once, even after a failed look',
    unit: {
      file: 'src/workflow/result-queue.ts',
      find: 'if (this.#handedOutEarly.has(result.position)) continue;',
      replace: '',
      tests: ['test/workflow/orchestrator.test.ts', 'test/workflow/model.test.ts'],
    },
  },
  {
    item: '2.5',
    fix: 'an action with an unread result counts as done',
    unit: {
      file: 'src/store/sqlite/tables/results.ts',
      find: 'AND action = ? AND known = 1`;',
      replace: 'AND action = ? AND known = 1 AND unread = 0`;',
      tests: ['test/store/workflow-agreement.test.ts', 'test/workflow/orchestrator.test.ts'],
    },
  },
  {
    item: '2.5',
    fix: 'an unread result is never dropped',
    unit: {
      file: 'src/store/sqlite/tables/results.ts',
      find: 'WHERE workflow = ? AND position = ? AND unread = 0',
      replace: 'WHERE workflow = ? AND position = ?',
      tests: ['test/store/workflow-agreement.test.ts', 'test/store/work.test.ts'],
    },
  },
  {
    item: '2.5',
    fix: 'a handler that hangs frees its place, and is reported',
    unit: {
      file: 'src/workflow/claim-set.ts',
      find: 'if (this.#giveUpPlace(attempt)) resolve();',
      replace: '',
      tests: ['test/workflow/processor.test.ts', 'test/workflow/processor-timers.test.ts'],
    },
  },
  {
    item: '2.9',
    fix: 'an answer counts as from outside unless its connection was inside when it was made',
    unit: {
      file: 'src/fleet/poll/http/http-request.ts',
      find: 'truncated, hash: digest, isFromOutside });',
      replace:
        'truncated, hash: digest, isFromOutside: response.socket?.remoteAddress !== undefined && isFromOutside });',
      tests: ['test/fleet/poll/http-inward.test.ts', 'test/fleet/poll/http-poller.test.ts'],
    },
  },
  {
    item: '2.9',
    fix: 'addresses of cloud metadata are never polled, IPv6 ones too',
    unit: {
      file: 'src/fleet/poll/http/addresses.ts',
      find: "      'fd00:ec2::/32',\n",
      replace: '',
      tests: ['test/fleet/poll/http-addresses.test.ts'],
    },
  },
  {
    item: '2.10',
    fix: 'a reader of the log skips what is no event',
    unit: {
      file: 'src/telemetry/event-log.ts',
      find: "if (typeof value !== 'object' || value === null) return null;",
      replace: '',
      tests: ['test/telemetry/event-log.test.ts', 'test/server/poison.test.ts'],
    },
  },
  {
    item: '2.10',
    fix: 'a fact named __proto__ is left out',
    unit: {
      file: 'src/telemetry/event-log.ts',
      find: 'if (!FACT_NAME.test(name)) return false;',
      replace: '',
      tests: ['test/telemetry/event-log.test.ts'],
    },
  },
  {
    item: '2.10',
    fix: 'one unreadable session does not stop recovery of the others',
    unit: {
      file: 'src/worker/open-session-watch.ts',
      find: '    if (session === null) {\n      this.#forget(id);\n      return;\n    }',
      replace: "    if (session === null) throw new Error('unreadable');",
      tests: ['test/worker/unreadable.test.ts'],
    },
  },
  {
    item: '2.11',
    fix: 'one token cannot fill all places with slow bodies',
    unit: {
      file: 'src/server/http/request-gate.ts',
      find: 'if (count > this.#maxInFlight) {',
      replace: 'if (count > this.#maxInFlight * 100) {',
      tests: ['test/server/bodies.test.ts'],
    },
  },
  {
    item: '2.13',
    fix: 'a quarantine has an exit code of its own',
    unit: {
      file: 'src/cli/exit-codes.ts',
      find: 'quarantined: EXIT.quarantined,',
      replace: 'quarantined: EXIT.held,',
      tests: ['test/cli/exit-codes.test.ts'],
    },
  },
  {
    item: '2.14',
    fix: 'a gap counts from the last renewal of the old owner',
    unit: {
      file: 'src/fleet/member/target-leases.ts',
      find: "silentMs: predecessor?.how === 'expired' ? this.#ttlMs : 0,",
      replace: 'silentMs: 0,',
      tests: ['test/fleet/member/taking.test.ts'],
    },
  },
];

export const FIXES = [...OF_LEASES, ...OF_WORK];
