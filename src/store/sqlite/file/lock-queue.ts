/**
 * Takes turns at the file. What is asked for in one turn of the event loop goes into one transaction; a transaction takes a few
 * milliseconds, whatever was asked for, and the rest follows after a turn of the event loop. A lock that somebody else
 * holds is tried again after a pause, until the time of the call is up: so a process that was stopped while it held the lock
 * delays the others' calls, but never their event loops.
 *
 * Reads have turns of their own: in the log of SQLite they need not wait for whoever writes.
 */
import type { Clock } from '../../../core/clock.ts';
import {
  ClosedError,
  OutcomeUnknownError,
  StoreRefusedError,
  StoreUnreachableError,
} from '../../../core/errors.ts';
import type { Random } from '../../../core/random.ts';
import type { Call } from '../../port/store.ts';
import type { DatabaseFile } from './database-file.ts';
import { asFailure, isBusy, isOfTheRequest } from './failures.ts';
import type { Tx } from './sqlite-connection.ts';

/** Work in one transaction; committing it takes about as long again where many rows changed. */
const SLICE_MS = 2.5;
/** How many requests go between two looks at the clock. */
const LOOK_EVERY = 8;
/** A lock is mostly held for less than a tenth of a millisecond: the first attempts come one turn apart. */
const QUICK_ATTEMPTS = 3;
/** Then there are pauses, all alike, so that who has waited long does not lose to who comes new; */
const PAUSE_MS = 1;
/** longer ones only when so many attempts have failed that whoever holds the lock must be standing still. */
const PATIENT_ATTEMPTS = 200;
const LONG_PAUSE_MS = 10;
/** Between attempts to open a file that can not be opened. */
const DOWN_PAUSE_MS = 50;
/**
 * Who has met others at the lock within this time works for so long at most and then leaves it free: for as long as it
 * had to wait itself, since the others wait about as long, within these limits.
 */
const COMPANY_MS = 20;
const BURST_MS = 1;
const SHORTEST_LEAVE_MS = 1;
const LONGEST_LEAVE_MS = 4;

export interface Batch<R> {
  readonly operation: string;
  readonly count: number;
  each(tx: Tx, index: number): R;
  /** The answer to a request that failed while others of its batch were, or are to be, carried out. */
  failed?(error: Error): R;
}

/** What can be done in transactions, wherever the tables are. */
export interface Transactions {
  read<R>(batch: Batch<R>, call: Call): Promise<R[]>;
  write<R>(batch: Batch<R>, call: Call): Promise<R[]>;
  readOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R>;
  writeOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R>;
}

interface Job {
  readonly operation: string;
  readonly sentMs: number;
  readonly untilMs: number;
  /** Works on what is left until it is done or `isOver`; says whether it is done. Nothing counts until `keep`. */
  work(tx: Tx, isOver: () => boolean): boolean;
  /** What has been worked on is committed. */
  keep(): void;
  /** It is rolled back. */
  discard(): void;
  /** The request last worked on can not be carried out. Says whether the job continues without that request. */
  skip(error: Error): boolean;
  finish(): void;
  fail(error: Error): void;
}

export class LockQueue implements Transactions {
  readonly #read: Lane;
  readonly #write: Lane;

  constructor(parts: { file: DatabaseFile; name: string; clock: Clock; random: Random }) {
    this.#read = new Lane('read', parts);
    this.#write = new Lane('write', parts);
  }

  read<R>(batch: Batch<R>, call: Call): Promise<R[]> {
    return this.#read.batch(batch, call);
  }

  write<R>(batch: Batch<R>, call: Call): Promise<R[]> {
    return this.#write.batch(batch, call);
  }

  async readOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return (await this.read({ operation, count: 1, each }, call))[0] as R;
  }

  async writeOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return (await this.write({ operation, count: 1, each }, call))[0] as R;
  }

  close(): void {
    this.#read.close();
    this.#write.close();
  }
}

class Lane {
  readonly #kind: 'read' | 'write';
  readonly #file: DatabaseFile;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #random: Random;
  #jobs: Job[] = [];
  #isRunning = false;
  readonly #closing = new AbortController();
  /** When somebody else was last met at the lock. */
  #companyAtMs = Number.NEGATIVE_INFINITY;
  #burstFromMs = 0;
  /** When the lock was first asked for in vain, since it was last had. */
  #waitingFromMs: number | null = null;
  #leaveMs = SHORTEST_LEAVE_MS;
  #attempts = 0;
  /** For so many transactions yet, each job has one of its own. */
  #oneByOne = 0;
  #isDown = false;
  /** Why the last attempt failed, for whoever runs out of time. */
  #lastFailure = '';

  constructor(
    kind: 'read' | 'write',
    parts: { file: DatabaseFile; name: string; clock: Clock; random: Random },
  ) {
    this.#kind = kind;
    this.#file = parts.file;
    this.#name = parts.name;
    this.#clock = parts.clock;
    this.#random = parts.random;
  }

  batch<R>({ operation, count, each, failed }: Batch<R>, { timeoutMs }: Call): Promise<R[]> {
    if (count === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const kept: R[] = [];
      let fresh: R[] = [];
      const skipped = new Map<number, R>();
      const sentMs = this.#clock.monotonicMs();
      this.#add({
        operation,
        sentMs,
        untilMs: sentMs + timeoutMs,
        work: (tx, isOver) => {
          for (let i = kept.length; i < count; i++) {
            if (i % LOOK_EVERY === 0 && fresh.length > 0 && isOver()) return false;
            fresh.push(skipped.get(i) ?? each(tx, i));
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
          if (failed === undefined) return reject(this.#halfDone(operation, sentMs, error));
          while (kept.length < count) kept.push(failed(error));
          resolve(kept);
        },
      });
    });
  }

  close(): void {
    this.#closing.abort();
    for (const job of this.#jobs.splice(0)) job.fail(new ClosedError({ operation: job.operation }));
  }

  #add(job: Job): void {
    if (this.#closing.signal.aborted) {
      job.fail(new ClosedError({ operation: job.operation }));
      return;
    }
    this.#jobs.push(job);
    if (this.#isRunning) return;
    this.#isRunning = true;
    // What else is asked for in this turn comes along.
    this.#clock.soon(() => void this.#run());
  }

  async #run(): Promise<void> {
    // A blocked event loop may have made it too late before the first attempt.
    this.#giveUpLate();
    while (this.#jobs.length > 0) {
      this.#attempt();
      await this.#pause();
      this.#giveUpLate();
    }
    this.#isRunning = false;
  }

  /** One transaction for as many jobs as it has time for. */
  #attempt(): void {
    const taken: Job[] = [];
    const done: Job[] = [];
    const most = this.#oneByOne > 0 ? 1 : Number.POSITIVE_INFINITY;
    let bad: unknown = null;
    try {
      this.#file.transaction(this.#jobs[0]?.operation ?? '', this.#kind, (tx) => {
        const overMs = this.#clock.monotonicMs() + SLICE_MS;
        const isOver = () => this.#clock.monotonicMs() > overMs;
        for (const job of this.#jobs) {
          if (taken.length === most || (taken.length > 0 && isOver())) break;
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
      if (bad === null) this.#failed(thrown, taken);
      else this.#setAside(bad, taken);
      return;
    }
    this.#oneByOne = Math.max(0, this.#oneByOne - 1);
    this.#had();
    this.#jobs = this.#jobs.slice(done.length);
    for (const job of taken) job.keep();
    for (const job of done) job.finish();
  }

  /** The last job's request can not be carried out. The transaction was rolled back; the next one has all the others. */
  #setAside(error: unknown, taken: readonly Job[]): void {
    const job = taken.at(-1) as Job;
    const where = { store: this.#name, operation: job.operation };
    const why = asFailure(error, where, 'work', 0);
    const goesOn = job.skip(why);
    for (const each of taken) each.discard();
    if (goesOn) return;
    this.#jobs = this.#jobs.filter((each) => each !== job);
    job.fail(why);
  }

  #failed(thrown: unknown, taken: readonly Job[]): void {
    for (const job of taken) job.discard();
    this.#isDown = thrown instanceof StoreUnreachableError;
    const error = thrown as Error;
    if (isBusy(error)) {
      this.#companyAtMs = this.#clock.monotonicMs();
      this.#waitingFromMs ??= this.#companyAtMs;
      this.#attempts++;
      this.#lastFailure = 'another process holds the lock of the file';
    } else if (this.#isDown) {
      this.#attempts++;
      this.#lastFailure = error.cause instanceof Error ? error.cause.message : error.message;
    } else if (taken.length > 1 && error instanceof StoreRefusedError) {
      // A full disk may have room for the others, without the largest of them.
      this.#oneByOne = taken.length;
    } else {
      this.#oneByOne = Math.max(0, this.#oneByOne - 1);
      // Nobody got as far as to take part: it would be the same for all of them.
      const failing = taken.length > 0 ? taken : this.#jobs;
      this.#jobs = this.#jobs.filter((job) => !failing.includes(job));
      for (const job of failing) job.fail(error);
    }
  }

  /** Between two transactions: others, in this process and elsewhere, get their turn. */
  async #pause(): Promise<void> {
    if (this.#attempts > 0 && this.#isDown) return this.#sleep(DOWN_PAUSE_MS);
    if (this.#attempts > PATIENT_ATTEMPTS) return this.#sleep(LONG_PAUSE_MS);
    if (this.#attempts > QUICK_ATTEMPTS) return this.#sleep(PAUSE_MS);
    const nowMs = this.#clock.monotonicMs();
    const isInCompany = this.#kind === 'write' && nowMs - this.#companyAtMs < COMPANY_MS;
    if (this.#attempts === 0 && isInCompany && nowMs - this.#burstFromMs > BURST_MS) {
      await this.#sleep(this.#leaveMs);
      this.#burstFromMs = this.#clock.monotonicMs();
      return undefined;
    }
    return new Promise((resolve) => this.#clock.afterInput(resolve));
  }

  /** The lock was to be had: remembers how long that took. */
  #had(): void {
    this.#attempts = 0;
    this.#lastFailure = '';
    if (this.#waitingFromMs === null) return;
    const waitedMs = this.#clock.monotonicMs() - this.#waitingFromMs;
    this.#waitingFromMs = null;
    this.#leaveMs = Math.min(Math.max(waitedMs, SHORTEST_LEAVE_MS), LONGEST_LEAVE_MS);
  }

  async #sleep(mostMs: number): Promise<void> {
    let untilMs = Number.POSITIVE_INFINITY;
    for (const job of this.#jobs) untilMs = Math.min(untilMs, job.untilMs);
    const ms = Math.min(mostMs * (0.5 + this.#random.next()), untilMs - this.#clock.monotonicMs());
    await this.#clock.sleep(Math.max(0, ms), this.#closing.signal).catch(() => {});
  }

  #giveUpLate(): void {
    const nowMs = this.#clock.monotonicMs();
    const late = this.#jobs.filter(({ untilMs }) => untilMs <= nowMs);
    if (late.length === 0) return;
    this.#jobs = this.#jobs.filter(({ untilMs }) => untilMs > nowMs);
    for (const job of late) {
      const why = `not done within ${Math.round(nowMs - job.sentMs)} ms; ${this.#lastFailure || 'too much else to do'}`;
      job.fail(new StoreUnreachableError({ store: this.#name, operation: job.operation, why }));
    }
  }

  #halfDone(operation: string, sentMs: number, cause: Error): Error {
    const afterMs = this.#clock.monotonicMs() - sentMs;
    const why = `a part of it was done before this happened: ${cause.message}`;
    return new OutcomeUnknownError({ store: this.#name, operation, afterMs, why }, { cause });
  }
}
