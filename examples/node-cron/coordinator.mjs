/** A run coordinator for node-cron 4.4 or later, to copy: each fire of a task runs on one instance, by `holdfast.once`. */

/** node-cron asks with the name of the task and the time of the fire: `name:2026-11-18T03:00:00.000Z`. */
const FIRE = /:\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * `options.per` is the time between two fires of the task. node-cron cannot stop a task that runs, so a task that must not
 * run on without its lease calls `holdfast.once` itself, and passes `signal` on.
 */
export function runCoordinator(holdfast, options) {
  /** By the key of a fire that runs here: what ends its run, and the promise of its end. */
  const running = new Map();
  return {
    /** node-cron skips the fire if this is false, and logs an error if it throws: then no instance runs it. */
    shouldRun: (key) =>
      new Promise((resolve, reject) => {
        const work = () =>
          new Promise((end) => {
            running.set(key, { end, ended });
            resolve(true);
          });
        const ended = holdfast.once(key.replace(FIRE, ''), options, work);
        ended.then((result) => {
          if (result.reason === 'quarantine')
            reject(new Error(`no grants for ${result.expiresInMs} ms`));
          else resolve(false);
        }, reject);
      }),
    /** The task has ended, well or badly: this waits until that is on record. */
    async onComplete(key) {
      const run = running.get(key);
      running.delete(key);
      run?.end();
      await run?.ended;
    },
  };
}
