/**
 * The API of redlock 4 on Holdfast's leases: `lock`, `unlock`, callbacks, `LockError` and the event
 * `clientError`. Each call is one of redlock 5, of which `redlock.ts` says what it promises.
 */
import { EventEmitter } from 'node:events';
import { systemClock } from '../core/clock.ts';
import type { Holdfast, OpenOptions } from '../holdfast.ts';
import { CallbackLock, lockOf, replaceLock } from './callback-lock.ts';
import type { RedlockClient } from './client.ts';
import { CallNotOfferedError, ExecutionError, LockError, ResourceLockedError } from './errors.ts';
import { checkNoScript, Redlock, WINDOW } from './redlock.ts';
import type { Settings } from './settings.ts';

/** As in Node: an error, or null and the result. */
export type RedlockCallback<T> = (error: Error | null, result?: T) => void;

/** The options of redlock 4. */
export type RedlockOptions = Partial<Omit<Settings, 'automaticExtensionThreshold'>>;

/** Redlock with the calls of version 4. */
export class CallbackRedlock extends EventEmitter {
  readonly driftFactor: number;
  readonly retryCount: number;
  readonly retryDelay: number;
  readonly retryJitter: number;
  readonly servers: readonly RedlockClient[];
  readonly #redlock: Redlock;

  /** `openOptions` are those of `open`. */
  constructor(
    clients: Iterable<RedlockClient> | Holdfast,
    options: RedlockOptions = {},
    openOptions: OpenOptions = {},
  ) {
    super();
    checkNoScript(options);
    this.#redlock = new Redlock(clients, options, openOptions);
    const { driftFactor, retryCount, retryDelay, retryJitter } = this.#redlock.settings;
    this.driftFactor = driftFactor;
    this.retryCount = retryCount;
    this.retryDelay = retryDelay;
    this.retryJitter = retryJitter;
    this.servers = [...this.#redlock.clients];
    this.#redlock.on('error', (error: Error) => {
      // A resource that another lock has is no error of a client.
      if (!(error instanceof ResourceLockedError)) this.emit('clientError', error);
    });
  }

  /** Locks one resource, or several, for `ttl` ms, or throws a `LockError`. */
  lock(
    resource: string | readonly string[],
    ttl: number,
    callback?: RedlockCallback<CallbackLock>,
  ): Promise<CallbackLock> {
    return this.lockWithOptions(resource, ttl, {}, callback);
  }

  acquire(
    resource: string | readonly string[],
    ttl: number,
    callback?: RedlockCallback<CallbackLock>,
  ): Promise<CallbackLock> {
    return this.lock(resource, ttl, callback);
  }

  lockWithOptions(
    resource: string | readonly string[],
    ttl: number,
    options: RedlockOptions,
    callback?: RedlockCallback<CallbackLock>,
  ): Promise<CallbackLock> {
    return withCallback(this.#lock(resource, ttl, options), callback);
  }

  acquireWithOptions(
    resource: string | readonly string[],
    ttl: number,
    options: RedlockOptions,
    callback?: RedlockCallback<CallbackLock>,
  ): Promise<CallbackLock> {
    return this.lockWithOptions(resource, ttl, options, callback);
  }

  /** Releases the lock. Throws a `LockError` if it was over, or the store did not answer. */
  unlock(lock: CallbackLock, callback?: RedlockCallback<void>): Promise<void> {
    return withCallback(this.#unlock(lock), callback);
  }

  release(lock: CallbackLock, callback?: RedlockCallback<void>): Promise<void> {
    return this.unlock(lock, callback);
  }

  /** Makes the lock valid for `ttl` ms from now, and returns the same lock. */
  extend(
    lock: CallbackLock,
    ttl: number,
    callback?: RedlockCallback<CallbackLock>,
  ): Promise<CallbackLock> {
    return withCallback(this.#extend(lock, ttl), callback);
  }

  /** Closes the client. Resolves with the answer of each client, of which there is one. */
  quit(callback?: RedlockCallback<string[]>): Promise<string[]> {
    return withCallback(this.#quit(), callback);
  }

  /** Not offered: it would need Bluebird. */
  disposer(_resource: string | readonly string[], _ttl: number): never {
    const instead =
      "with Bluebird's Promise write Promise.resolve(redlock.lock(resource, ttl)).disposer((lock) => lock.unlock())";
    throw new CallNotOfferedError({ call: 'disposer()', instead });
  }

  async #lock(
    resource: string | readonly string[],
    ttl: number,
    options: RedlockOptions,
  ): Promise<CallbackLock> {
    const resources = Array.isArray(resource) ? resource : [resource];
    const { retryCount = this.retryCount } = options;
    try {
      const lock = await this.#redlock.acquire(resources, ttl, options);
      return new CallbackLock(this, resource, lock, retryCount);
    } catch (error) {
      throw lockError(error, exceeded(retryCount, resource));
    }
  }

  async #quit(): Promise<string[]> {
    await this.#redlock.quit();
    return this.servers.map(() => 'OK');
  }

  async #unlock(lock: CallbackLock): Promise<void> {
    try {
      await this.#redlock.release(lockOf(lock));
    } catch (error) {
      const failed = `Unable to fully release the lock on resource "${lock.resource}".`;
      throw lockError(error, failed);
    }
  }

  async #extend(lock: CallbackLock, ttl: number): Promise<CallbackLock> {
    const isOver = lockOf(lock).expiration === 0;
    try {
      replaceLock(lock, await this.#redlock.extend(lockOf(lock), ttl));
      return lock;
    } catch (error) {
      const expired = `Cannot extend lock on resource "${lock.resource}" because the lock has already expired.`;
      throw lockError(error, isOver ? expired : exceeded(this.retryCount, lock.resource));
    }
  }
}

function exceeded(retryCount: number, resource: string | readonly string[]): string {
  return `Exceeded ${retryCount} attempts to lock the resource "${resource}".`;
}

/** redlock 4's sentence, and then why. An error that is no failure of a lock stays as it is. */
function lockError(error: unknown, sentence: string): unknown {
  if (!(error instanceof ExecutionError)) return error;
  const why = error.message.replace(`${WINDOW} `, '');
  return new LockError(`${sentence} ${why}`, error.attempts.length, { cause: error.cause });
}

/** As Bluebird does: an error that the callback was given is not reported as unhandled. */
function withCallback<T>(promise: Promise<T>, callback?: RedlockCallback<T>): Promise<T> {
  if (callback === undefined) return promise;
  // Not within the promise: an error that the callback throws would be lost in it.
  promise.then(
    (result) => systemClock.soon(() => callback(null, result)),
    (error: Error) => systemClock.soon(() => callback(error)),
  );
  return promise;
}
