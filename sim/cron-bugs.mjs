/** Bugs of a job that is to run once per period. They are looked for where hosts with clocks of their own have the same crontab. */
const worlds = { kind: 'cron', hours: 20 };

export const CRON_BUGS = [
  {
    name: 'tolerance ignored',
    about:
      'a fire on a host whose clock is early comes too soon after the last one, and is not run',
    worlds,
    patches: [
      {
        file: 'lease/period.js',
        find: 'return periodAtMs + perMs - toleranceMs;',
        replace: 'return periodAtMs + perMs;',
      },
    ],
  },
  {
    name: 'periods of the calendar',
    about: 'one host fires before a boundary of the calendar, another after it, and both run',
    worlds,
    patches: [
      {
        file: 'lease/period.js',
        find: 'if (nowMs >= nextPeriodAtMs(last, rules))',
        replace:
          'if (Math.floor((nowMs - 300000) / rules.perMs) > Math.floor((last.startedAtMs - 300000) / rules.perMs))',
      },
    ],
  },
  {
    name: 'retry moves the period',
    about: 'a run that was started over late makes the next fire come too soon',
    worlds,
    patches: [
      {
        file: 'lease/period.js',
        find: "hasCrashed && rules.onCrash === 'retry' ? last.periodAtMs : null",
        replace: "hasCrashed && rules.onCrash === 'retry' ? nowMs + rules.toleranceMs : null",
      },
    ],
  },
  {
    name: 'start not on record',
    about:
      'a host that dies in the middle leaves no trace, and another runs the job in the same period',
    worlds,
    patches: [
      {
        file: 'lease/once.js',
        find: 'await retryStore(rt, lease.signal, () => writeRun(rt, lease, run));\n        return null;',
        replace: 'return null;',
      },
    ],
  },
  {
    name: 'start without a look at the lease',
    about: 'a process that stood still while its start was written begins when its lease is over',
    worlds,
    patches: [{ file: 'lease/once.js', find: 'lease.assertHeld();', replace: '' }],
  },
  {
    name: 'released before the end is on record',
    about:
      'a host that waits for the lease finds a run without an end, takes it for a crash and starts over',
    worlds,
    patches: [
      {
        file: 'lease/once.js',
        find: 'if (hasEnded)\n            await recordEnd(',
        replace: 'await lease.release();\n        if (hasEnded)\n            await recordEnd(',
      },
    ],
  },
  {
    name: 'record without a fence',
    about:
      'a process that wakes after a whole period overwrites the record of the next one, which is run again',
    worlds,
    patches: [
      {
        file: 'lease/once.js',
        find: '[{ id: key, value, fence }]',
        replace: '[{ id: key, value }]',
      },
    ],
  },
];
