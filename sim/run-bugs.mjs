/** Bugs of fleets that run a task per target. They are looked for where targets have tasks. */
const worlds = { runs: true, hours: 0.5 };
const file = 'fleet/run/task-scheduler.js';

export const RUN_BUGS = [
  {
    name: 'task handed over while it runs',
    about: 'a target is handed over without waiting for its task to settle',
    worlds,
    patches: [{ file, find: 'return run.settled;', replace: 'return null;' }],
  },
  {
    name: 'task not told of a loss',
    about: 'a task goes on when its lease is lost, and only a handover tells it to stop',
    worlds,
    patches: [
      {
        file,
        find: 'this.#stop(task, run, isLost ? task.lease.signal.reason : released);',
        replace: 'if (!isLost)\n            this.#stop(task, run, released);',
      },
    ],
  },
  {
    name: 'task begun without its lease',
    about: 'a task that ended is started again without asking the lease',
    worlds,
    patches: [{ file, find: 'else if (task.lease.isHeld()) {', replace: 'else if (nowMs > 0) {' }],
  },
  {
    name: 'task not started again',
    about: 'a task that ended by itself is never started again',
    worlds,
    patches: [
      {
        file,
        find: 'this.#timers.schedule(task, clock.monotonicMs() + restartInMs);',
        replace: 'void restartInMs;',
      },
    ],
  },
  {
    name: 'stuck task not reported',
    about: 'a task that does not stop when its lease is lost is not reported',
    worlds,
    patches: [
      {
        file,
        find: 'const timer = clock.after(this.#settings.graceMs, () => this.#onStuck(task, run));',
        replace: 'const timer = clock.after(this.#settings.graceMs, () => {});',
      },
    ],
  },
];
