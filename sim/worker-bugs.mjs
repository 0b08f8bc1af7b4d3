/** The same for workers: bugs that programs which share devices have had. They are looked for where there are clients. */
const worlds = { intents: 6 };

/** Workers are replaced every few seconds, each with little time to stop: so some of what they are just ending takes longer. */
const replacements = {
  ...worlds,
  hours: 0.1,
  episodes: [
    {
      lastsMs: 100_000,
      faults: Array.from({ length: 24 }, (_, i) => ({
        kind: 'worker is replaced',
        atMs: 2_000 + 4_000 * i,
        forMs: 0,
        seat: i % 3,
        size: (i % 5) / 20,
        point: 'clock',
      })),
    },
  ],
};

/** A worker is replaced while its store does not answer: some pipelines end by themselves meanwhile. */
const replacedWhileCut = {
  ...worlds,
  hours: 0.1,
  episodes: [
    {
      lastsMs: 160_000,
      faults: Array.from({ length: 12 }, (_, i) => {
        const atMs = 2_000 + 12_000 * i;
        const seat = i % 3;
        return [
          { kind: 'cut', atMs, forMs: 9_000, seat, size: 0.5, point: 'clock' },
          {
            kind: 'worker is replaced',
            atMs: atMs + 3_000,
            forMs: 0,
            seat,
            size: 0.1,
            point: 'clock',
          },
        ];
      }).flat(),
    },
  ],
};

export const WORKER_BUGS = [
  {
    name: 'everything freed at a restart',
    about: 'a worker that was killed frees all leases as it starts again, and not only its own',
    worlds,
    patches: [
      {
        file: 'worker/worker-name-lock.js',
        find: 'const isTheirs = holder === instance ||',
        replace: 'const isTheirs = true ||',
      },
    ],
  },
  {
    name: 'freed by a name alone',
    about:
      'who has the name of another takes it for its own life before, whether that is over or not',
    worlds,
    patches: [
      {
        file: 'worker/worker-name-lock.js',
        find: `before.host === host.id &&
            before.lock === this.#lockName`,
        replace: 'true',
      },
    ],
  },
  {
    name: 'slot let go of at once',
    about:
      'the leases of a session are released when its pipeline is told to end, not when it has ended',
    worlds,
    patches: [
      {
        file: 'worker/session-run.js',
        find: 'running.stop();',
        replace: 'running.stop();\n            void this.#leases.release();',
      },
    ],
  },
  {
    name: 'over without a word',
    about:
      'the leases of a session are released before the store knows that it has ended: another worker runs it again',
    worlds,
    patches: [
      {
        file: 'worker/session-run.js',
        find: "await this.#advance('STOPPING', change);",
        replace: ';',
      },
    ],
  },
  {
    name: 'a failure that is not counted',
    about:
      'a worker that stops releases the leases of a session that failed, and the store has not counted the failure: it is tried once too often',
    worlds,
    patches: [
      {
        file: 'worker/session-run.js',
        find: 'await this.#countFailure(this.#abandoned.signal);',
        replace: ';',
      },
    ],
  },
  {
    name: 'left after its end',
    about:
      'a worker is told to stop after a pipeline has ended, and before the store can be told: it leaves the session to another worker, which runs it again',
    worlds,
    patches: [
      {
        file: 'worker/session-run.js',
        find: 'const cause = tried === null ? this.#cause : tried.cause;',
        replace: 'const cause = this.#cause;',
      },
    ],
  },
  {
    name: 'ended before it is free',
    about: 'a session ends first, and releases its leases afterwards',
    worlds,
    patches: [
      {
        file: 'worker/session-run.js',
        find: "await this.#release(outcome);\n        await this.#advance('ENDED', change);",
        replace: "await this.#advance('ENDED', change);\n        await this.#release(outcome);",
      },
    ],
  },
  {
    name: 'kept after a refusal',
    about: 'a session for which there is no slot keeps the channel',
    worlds,
    patches: [
      {
        file: 'worker/session-run.js',
        find: "await this.#release(outcome);\n        await this.#advance('ENDED', change);",
        replace:
          "if (this.#running !== null)\n            await this.#release(outcome);\n        await this.#advance('ENDED', change);",
      },
    ],
  },
  {
    name: 'busy with itself',
    about: 'a session that runs elsewhere already is taken for another that has its channel',
    worlds,
    patches: [
      {
        file: 'worker/session-leases.js',
        find: 'if (holder.endsWith(',
        replace: 'if (!holder.endsWith(holder) && holder.endsWith(',
      },
    ],
  },
  {
    name: 'gone on with unasked',
    about: 'a session that another worker has is taken over without a look at its lease',
    worlds,
    patches: [
      {
        file: 'worker/open-session-watch.js',
        find: 'const isHeld = lease?.kind ===',
        replace: 'const isHeld = !lease && lease?.kind ===',
      },
      {
        file: 'worker/session-run.js',
        find: `if (!(own instanceof Lease))
            return own;
        this.#watch(own, span);`,
        replace: `if (!(own instanceof Lease) && !this.#isRecovery)
            return own;
        if (own instanceof Lease)
            this.#watch(own, span);`,
      },
    ],
  },
  {
    name: 'never gone on with',
    about: 'nobody takes over what a dead worker had',
    worlds,
    patches: [
      {
        file: 'worker/open-session-watch.js',
        find: 'this.#runs.recover(stored)',
        replace: 'stored === null',
      },
    ],
  },
  {
    name: 'loss unheard',
    about: 'a pipeline is neither told nor, when it asks, stopped when a lease of its is lost',
    worlds,
    patches: [
      { file: 'worker/session-run.js', find: "this.#stopFor('lost');\n        };", replace: '};' },
      {
        file: 'worker/session-run.js',
        find: 'signal.throwIfAborted();\n                this.#leases.assertHeld();',
        replace: 'signal.throwIfAborted();',
      },
    ],
  },
  {
    name: 'stops by hints alone',
    about: 'a worker hears that a session is to stop, or never learns of it',
    worlds,
    patches: [
      {
        file: 'worker/open-session-watch.js',
        find: 'for (const id of this.#runs.ids)\n                    changed.add(id);',
        replace: ';',
      },
      {
        file: 'worker/open-session-watch.js',
        find: 'const ALL_EVERY_MS = 30_000;',
        replace: 'const ALL_EVERY_MS = 1e9;',
      },
    ],
  },
  {
    name: 'whatever its revision',
    about: 'a worker writes what it thinks of a session over what has become of it meanwhile',
    worlds,
    patches: [
      {
        file: 'worker/session-record.js',
        find: 'const step = { ifRevision, ifChangedAtMs, state, status };',
        replace: `const [now] = await store.intents.read([this.id], CALL);
        const step = { ifRevision: now?.revision ?? before.revision, state, status };`,
      },
    ],
  },
  {
    name: 'left behind for ever',
    about:
      'a worker that has stopped too late keeps the leases of what it was ending for as long as its process lives',
    worlds: replacements,
    patches: [
      {
        file: 'worker/session-run.js',
        find: 'await this.#leases.abandon(this.#running?.ended);',
        replace: ';',
      },
      {
        file: 'worker/session-run.js',
        find: 'await this.#releaseUntold(outcome);',
        replace: ';',
      },
    ],
  },
  {
    name: 'free before the store knows',
    about:
      'a worker that stops while the store is away releases the leases of a pipeline that has ended by itself: another worker runs the session again',
    worlds: replacedWhileCut,
    patches: [
      {
        file: 'worker/session-run.js',
        find: 'return this.#leases.expire();',
        replace: 'return this.#release(outcome);',
      },
    ],
  },
  {
    name: 'expired, and never acquired again',
    about:
      'the leases of a pipeline whose end the store does not know expire, but this process still counts them as in use: it recovers the session for ever',
    worlds: replacedWhileCut,
    patches: [
      {
        file: 'worker/session-leases.js',
        find: 'void settled.then(endWork, endWork);',
        replace: ';',
      },
    ],
  },
  {
    name: "the interface's name is anybody's",
    about:
      'who takes over a session whose channel its own interface had leased does so under the same name as who had gone on with it',
    worlds,
    patches: [
      {
        file: 'worker/session-leases.js',
        find: 'return holder === tenure?.holder ?',
        replace: 'return tenure === null ?',
      },
      { file: 'worker/worker-name-lock.js', find: '&& !spared.has(holder)', replace: '' },
    ],
  },
];
