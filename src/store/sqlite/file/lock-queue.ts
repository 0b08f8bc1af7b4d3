/**
 * Queues transactions for the lock of the file. Requests of one turn of the event loop go into one
 * transaction. A transaction takes a few milliseconds, however much is queued, and the rest follows
 * after a turn of the event loop. If another connection holds the lock, the queue tries again after
 * a pause until the call times out. So a process that was stopped with the lock delays the calls of
 * other processes, but never blocks their event loops.
 *
 * Reads have a queue of their own: with SQLite's log they need not wait for a writer.
 */
import type { Clock } from '../../../core/clock.ts';
import {
  ClosedError,
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
} from '../../../core/errors.ts';
import type { Random } from '../../../core/random.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { Call } from '../../port/store.ts';
import { asStoreError, isBusy, isOfTheRequest } from './failures.ts';
import type { FileConnection } from './file-connection.ts';
import type { Tx } from './sqlite-connection.ts';

/** The work of one transaction. COMMIT takes about as long again if many rows changed. */
const MAX_WORK_MS = 2.5;
/** The clock is read once for so many requests. */
const CHECK_CLOCK_EVERY = 8;
/** The lock is mostly held for less than 0.1 ms, so the first attempts are one turn apart. */
const QUICK_ATTEMPTS = 3;
/** Then the pauses no longer grow: a process that has waited long must not lose to a new one. */
const PAUSE_MS = 1;
/** After so many attempts the process with the lock must have stopped: the pauses get longer. */
const PATIENT_ATTEMPTS = 200;
const LONG_PAUSE_MS = 10;
/** The pause between attempts to open a file that cannot be opened. */
const DOWN_PAUSE_MS = 50;
/**
 * A queue that met another process at the lock within `CONTENDED_MS` works for at most `BURST_MS`.
 * Then it leaves the lock free for as long as it had to wait itself, within these limits: the other
 * process waits about as long.
 */
const CONTENDED_MS = 20;
const BURST_MS = 1;
const MIN_LEAVE_MS = 1;
const MAX_LEAVE_MS = 4;

export interface Batch<T, R> {
  readonly operation: string;
  readonly items: readonly T[];
  each(tx: Tx, item: T, index: number): R;
  /** Returns the reply to a request that failed alone. The others of its batch are executed. */
  failed?(error: Error): R;
}

/** Runs transactions on the tables, in a file or in memory. */
export interface Transactions {
  read<T, R>(batch: Batch<T, R>, call: Call): Promise<R[]>;
  write<T, R>(batch: Batch<T, R>, call: Call): Promise<R[]>;
  readOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R>;
  writeOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R>;
}

interface Job {
  readonly operation: string;
  readonly sentMs: number;
  readonly untilMs: number;
  /** Executes the remaining requests until `isOver`. Returns whether all are done. */
  work(tx: Tx, isOver: () => boolean): boolean;
  /** The transaction was committed: keeps its replies. */
  keep(): void;
  /** The transaction was rolled back: drops its replies. */
  discard(): void;
  /** The last request cannot be executed. Returns whether the job continues without it. */
  skip(error: Error): boolean;
  finish(): void;
  fail(error: Error): void;
}

export class LockQueue implements Transactions {
  readonly #reads: JobQueue;
  readonly #writes: JobQueue;

  constructor(rt: BaseRuntime, file: FileConnection, store: string) {
    this.#reads = new JobQueue(rt, file, store, 'read');
    this.#writes = new JobQueue(rt, file, store, 'write');
  }

  read<T, R>(batch: Batch<T, R>, call: Call): Promise<R[]> {
    return this.#reads.add(batch, call);
  }

  write<T, R>(batch: Batch<T, R>, call: Call): Promise<R[]> {
    return this.#writes.add(batch, call);
  }

  async readOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return (await this.read({ operation, items: [null], each }, call))[0] as R;
  }

  async writeOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return (await this.write({ operation, items: [null], each }, call))[0] as R;
  }

  close(): void {
    this.#reads.close();
    this.#writes.close();
  }
}

/** The queued jobs of one kind, and the loop that executes them. */
class JobQueue {
  readonly #kind: 'read' | 'write';
  readonly #file: FileConnection;
  readonly #store: string;
  readonly #clock: Clock;
  readonly #random: Random;
  #jobs: Job[] = [];
  #isRunning = false;
  readonly #closing = new AbortController();
  /** When another process last held the lock. */
  #contendedAtMs = Number.NEGATIVE_INFINITY;
  #burstFromMs = 0;
  /** When the first attempt failed since the lock was last acquired. */
  #waitingFromMs: number | null = null;
  #leaveMs = MIN_LEAVE_MS;
  /** Failed attempts since the lock was last acquired. */
  #attempts = 0;
  /** So many of the next transactions have one job each. */
  #oneByOne = 0;
  #isDown = false;
  /** Why the last attempt failed, for the error of a call that times out. */
  #lastFailure = '';

  constructor(rt: BaseRuntime, file: FileConnection, store: string, kind: 'read' | 'write') {
    this.#kind = kind;
    this.#file = file;
    this.#store = store;
    this.#clock = rt.clock;
    this.#random = rt.random;
  }

  add<T, R>(batch: Batch<T, R>, { timeoutMs }: Call): Promise<R[]> {
    const { operation, items, each, failed } = batch;
    if (items.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const kept: R[] = [];
      let fresh: R[] = [];
      const skipped = new Map<number, R>();
      const sentMs = this.#clock.monotonicMs();
      this.#push({
        operation,
        sentMs,
        untilMs: sentMs + timeoutMs,
        work: (tx, isOver) => {
          for (let i = kept.length; i < items.length; i++) {
            if (i % CHECK_CLOCK_EVERY === 0 && fresh.length > 0 && isOver()) return false;
            fresh.push(skipped.get(i) ?? each(tx, items[i] as T, i));
          }
          return true;
        },
        keep: () => {
          for (const reply of fresh) kept.push(reply);
          fresh = [];
        },
        discard: () => {
          fresh = [];
        },
        skip: (error) => {
          if (failed === undefined) return false;
          skipped.set(kept.length + fresh.length, failed(error));
          return true;
        },
        finish: () => resolve(kept),
        fail: (error) => {
          if (kept.length === 0) return reject(error);
          if (failed === undefined) return reject(this.#partlyDone(operation, sentMs, error));
          while (kept.length < items.length) kept.push(failed(error));
          resolve(kept);
        },
      });
    });
  }

  close(): void {
    this.#closing.abort();
    for (const job of this.#jobs.splice(0)) job.fail(new ClosedError({ operation: job.operation }));
  }

  #push(job: Job): void {
    if (this.#closing.signal.aborted) {
      job.fail(new ClosedError({ operation: job.operation }));
      return;
    }
    this.#jobs.push(job);
    if (this.#isRunning) return;
    this.#isRunning = true;
    // Other requests of this turn go into the same transaction.
    this.#clock.soon(() => void this.#run());
  }

  async #run(): Promise<void> {
    // A blocked event loop may have used up the timeout before the first attempt.
    this.#failLate();
    while (this.#jobs.length > 0) {
      this.#attempt();
      await this.#pause();
      this.#failLate();
    }
    this.#isRunning = false;
  }

  /** Executes as many jobs as one transaction has time for. */
  #attempt(): void {
    const taken: Job[] = [];
    const done: Job[] = [];
    const maxJobs = this.#oneByOne > 0 ? 1 : Number.POSITIVE_INFINITY;
    let bad: unknown = null;
    try {
      this.#file.transaction(this.#jobs[0]?.operation ?? '', this.#kind, (tx) => {
        const overMs = this.#clock.monotonicMs() + MAX_WORK_MS;
        const isOver = () => this.#clock.monotonicMs() > overMs;
        for (const job of this.#jobs) {
          if (taken.length === maxJobs || (taken.length > 0 && isOver())) break;
          taken.push(job);
          try {
            if (!job.work(tx, isOver)) break;
          } catch (error) {
            bad = isOfTheRequest(error) ? error : null;
            throw error;
          }
          done.push(job);
        }
      });
    } catch (thrown) {
      if (bad === null) this.#handleFailure(thrown, taken);
      else this.#skipRequest(bad, taken);
      return;
    }
    this.#oneByOne = Math.max(0, this.#oneByOne - 1);
    this.#onAcquired();
    this.#jobs = this.#jobs.slice(done.length);
    for (const job of taken) job.keep();
    for (const job of done) job.finish();
  }

  /** A request of the last job cannot be executed. The next transaction has all the others. */
  #skipRequest(error: unknown, taken: readonly Job[]): void {
    const job = taken.at(-1) as Job;
    const where = { store: this.#store, operation: job.operation };
    const why = asStoreError(error, where, 'work', 0);
    const continues = job.skip(why);
    for (const each of taken) each.discard();
    if (continues) return;
    this.#jobs = this.#jobs.filter((each) => each !== job);
    job.fail(why);
  }

  #handleFailure(thrown: unknown, taken: readonly Job[]): void {
    for (const job of taken) job.discard();
    this.#isDown = thrown instanceof StoreUnreachableError;
    const error = thrown as Error;
    if (isBusy(error)) {
      this.#contendedAtMs = this.#clock.monotonicMs();
      this.#waitingFromMs ??= this.#contendedAtMs;
      this.#attempts++;
      this.#lastFailure = 'another process holds the lock of the file';
    } else if (this.#isDown) {
      this.#attempts++;
      this.#lastFailure = error.cause instanceof Error ? error.cause.message : error.message;
    } else if (taken.length > 1 && error instanceof StoreRefusedError) {
      // A full disk may have space for the smaller jobs, so each is tried alone.
      this.#oneByOne = taken.length;
    } else {
      this.#oneByOne = Math.max(0, this.#oneByOne - 1);
      // No job was begun: the error would be the same for all of them.
      const failing = taken.length > 0 ? taken : this.#jobs;
      this.#jobs = this.#jobs.filter((job) => !failing.includes(job));
      for (const job of failing) job.fail(error);
    }
  }

  /** Between two transactions, other work of this process and other processes can run. */
  async #pause(): Promise<void> {
    if (this.#attempts > 0 && this.#isDown) return this.#sleep(DOWN_PAUSE_MS);
    if (this.#attempts > PATIENT_ATTEMPTS) return this.#sleep(LONG_PAUSE_MS);
    if (this.#attempts > QUICK_ATTEMPTS) return this.#sleep(PAUSE_MS);
    const nowMs = this.#clock.monotonicMs();
    const isContended = this.#kind === 'write' && nowMs - this.#contendedAtMs < CONTENDED_MS;
    if (this.#attempts === 0 && isContended && nowMs - this.#burstFromMs > BURST_MS) {
      await this.#sleep(this.#leaveMs);
      this.#burstFromMs = this.#clock.monotonicMs();
      return undefined;
    }
    return new Promise((resolve) => this.#clock.afterInput(resolve));
  }

  /** The lock was acquired: measures how long that took. */
  #onAcquired(): void {
    this.#attempts = 0;
    this.#lastFailure = '';
    if (this.#waitingFromMs === null) return;
    const nowMs = this.#clock.monotonicMs();
    const waitedMs = nowMs - this.#waitingFromMs;
    this.#waitingFromMs = null;
    // While this queue waited, it left the lock to the others.
    this.#burstFromMs = nowMs;
    this.#leaveMs = Math.min(Math.max(waitedMs, MIN_LEAVE_MS), MAX_LEAVE_MS);
  }

  async #sleep(maxMs: number): Promise<void> {
    let untilMs = Number.POSITIVE_INFINITY;
    for (const job of this.#jobs) untilMs = Math.min(untilMs, job.untilMs);
    const ms = Math.min(maxMs * (0.5 + this.#random.next()), untilMs - this.#clock.monotonicMs());
    await this.#clock.sleep(Math.max(0, ms), this.#closing.signal).catch(() => {});
  }

  #failLate(): void {
    const nowMs = this.#clock.monotonicMs();
    const late = this.#jobs.filter(({ untilMs }) => untilMs <= nowMs);
    if (late.length === 0) return;
    this.#jobs = this.#jobs.filter(({ untilMs }) => untilMs > nowMs);
    for (const job of late) {
      const why = `not done within ${Math.round(nowMs - job.sentMs)} ms; ${this.#lastFailure || 'too many other requests were queued'}`;
      job.fail(new StoreUnreachableError({ store: this.#store, operation: job.operation, why }));
    }
  }

  #partlyDone(operation: string, sentMs: number, cause: Error): Error {
    const afterMs = this.#clock.monotonicMs() - sentMs;
    const why = `a part of it was executed before this error: ${cause.message}`;
    return new OutcomeUnknownError({ store: this.#store, operation, afterMs, why }, { cause });
  }
}
