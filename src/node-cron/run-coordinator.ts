import { ConfigError } from '../core/errors.ts';
import { Holdfast } from '../holdfast.ts';
import {
  checkOnceOptions,
  type OnceOptions,
  type OnceResult,
  quarantineError,
} from '../lease/once.ts';

/** What node-cron asks before each fire of a task with `distributed: true`. */
export interface RunCoordinator {
  /** node-cron skips the fire if this is false, and logs an error if it throws. */
  shouldRun(key: string): Promise<boolean>;
  /** The task has ended, well or badly: resolves when that is on record. */
  onComplete(key: string): Promise<void>;
}

/** A run that node-cron has begun. */
interface Fire {
  readonly end: () => void;
  readonly ended: Promise<OnceResult<void>>;
}

/** What node-cron appends to the name of the task: `mails:2026-11-18T03:00:00.000Z`. */
const FIRE_TIME = /:\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * Runs each fire of a task once, by `holdfast.once` with the task's name as key. `options.per` is
 * the time between two fires. node-cron cannot stop a task that runs. A task that must not continue
 * without its lease calls `holdfast.once` itself, and passes `signal` on.
 */
export function runCoordinator(holdfast: Holdfast, options: OnceOptions): RunCoordinator {
  if (!(holdfast instanceof Holdfast)) {
    const rule = 'it has to be what `open` resolves to';
    throw new ConfigError({ field: 'holdfast', value: holdfast, rule });
  }
  checkOnceOptions('options', options);
  const running = new Map<string, Fire>();
  return {
    shouldRun: (key) =>
      new Promise((resolve, reject) => {
        const work = () =>
          new Promise<void>((end) => {
            running.set(key, { end, ended });
            resolve(true);
          });
        const ended = holdfast.once(key.replace(FIRE_TIME, ''), options, work);
        ended.then((result) => {
          if (!result.ok && result.reason === 'quarantine') reject(quarantineError(result));
          else resolve(false);
        }, reject);
      }),
    onComplete: async (key) => {
      const fire = running.get(key);
      running.delete(key);
      fire?.end();
      await fire?.ended;
    },
  };
}
