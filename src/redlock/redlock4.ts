/** The API of redlock 4; docs/coming-from/redlock.md lists the differences. */
import { CallbackLock } from './callback-lock.ts';
import { CallbackRedlock } from './callback-redlock.ts';
import { CallNotOfferedError, LockError } from './errors.ts';

export type { RedlockCallback, RedlockOptions } from './callback-redlock.ts';
export type { RedlockClient } from './client.ts';
export type { Settings } from './settings.ts';

/** What `require` returns: the class, and all else as its fields. */
const required = Object.assign(CallbackRedlock, {
  default: CallbackRedlock,
  Redlock: CallbackRedlock,
  Lock: CallbackLock,
  LockError,
  CallNotOfferedError,
});

export {
  CallbackLock as Lock,
  CallbackRedlock as default,
  CallbackRedlock as Redlock,
  CallNotOfferedError,
  LockError,
  required as 'module.exports',
};
