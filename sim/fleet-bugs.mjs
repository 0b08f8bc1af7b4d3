/** Bugs of the fleet that only a target shows which is paused and resumed. They are looked for where targets are sessions. */
const worlds = { sessions: true, hours: 0.5 };

export const FLEET_BUGS = [
  {
    name: 'paused target forgotten',
    about:
      'a paused target that comes due is taken off the schedule, although its owner has not released it',
    worlds,
    patches: [
      {
        file: 'fleet/poll/poll-scheduler.js',
        find: 'if (target === undefined)\n            this.#due.schedule(polled, nowMs + this.#settings.everyMs);',
        replace: 'if (target === undefined)\n            return;',
      },
    ],
  },
];
