/**
 * Writes the result of each target's last poll to the store, with the poller's fence: a result that
 * comes after the target has another owner is refused there. One request writes many. Only the
 * newest result of a target is kept, so what waits is bounded by the number of targets, however
 * long the store is unavailable.
 *
 * A removed target leaves no result: an instance that has written one removes it. The fence keeps
 * it from removing the result of a later owner.
 */
import { isDoneWithin, type Timer, timeLeft } from '../../core/clock.ts';
import { KeyForeignError } from '../../core/errors.ts';
import { jittered } from '../../core/random.ts';
import type {
  PutReply,
  RecordRef,
  RecordWrite,
  RefusedWrite,
  RemoveReply,
} from '../../store/port/record-store.ts';
import type { Runtime } from '../../store/runtime.ts';
import { RESULT_COLLECTION } from '../targets/target-record.ts';
import { plainCopy } from './plain-data.ts';
import type { PollHistory, RecentPoll } from './poll-history.ts';

/** How a poll ended, or how a task is doing. */
export interface TargetOutcome {
  readonly ok: boolean;
  /** How long the poll took; for a task, how long it has run. */
  readonly tookMs: number;
  readonly error?: string;
  /**
   * Of a task: `waiting` to be started again, `silent` without progress, or `stuck` after it was
   * told to stop. Absent for polls.
   */
  readonly state?: 'running' | 'waiting' | 'silent' | 'stuck';
  /** Failed polls, or ends of a task, in a row. */
  readonly failures?: number;
  /** The poll's return value. Kept only if it is plain JSON data of up to 16 KiB. */
  readonly value?: unknown;
}

/** What a poll or a task reports. */
export interface WorkOutcome extends TargetOutcome {
  /** How long until the target is polled again after a failure, or its task is started again. */
  readonly nextInMs?: number;
}

/** The record `result:<target id>`. */
export interface StoredResult extends TargetOutcome {
  /** When the poll ended, or the state of the task began, in milliseconds since 1970. */
  readonly at: number;
  /** When it is polled or started again after a failure, in milliseconds since 1970. */
  readonly nextAt?: number;
  /** The id of the instance that polled. */
  readonly by: string;
  /** The last polls of this owner, this one included, the oldest first. */
  readonly recent?: readonly RecentPoll[];
}

/** So many are written at once; fewer wait for more, at most `LINGER_MS`. */
const BATCH = 200;
const LINGER_MS = 100;
const TIMEOUT_MS = 5_000;
/** Pauses after a failed request double from the first to the second. */
const MIN_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5_000;
const MAX_VALUE_CHARS = 16_384;
const MAX_ERROR_CHARS = 500;

/** `result: null`: the target is removed, and so is its stored result. */
interface Waiting {
  readonly fence: number;
  readonly result: StoredResult | null;
  readonly recent: PollHistory | null;
}

type Failed = Extract<RefusedWrite, { kind: 'failed' }>;

export class ResultWriter {
  readonly #rt: Runtime;
  /** The newest result of each target, the one that has waited longest first. */
  readonly #waiting = new Map<string, Waiting>();
  /** The batch on its way to the store. */
  #batch: ReadonlyMap<string, Waiting> = new Map();
  /** The fence of the last result sent for a target, until that is removed. */
  readonly #sent = new Map<string, number>();
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;
  /** 0 unless the last request failed. */
  #pauseMs = 0;
  #isClosed = false;

  constructor(rt: Runtime) {
    this.#rt = rt;
  }

  /** How many targets have a result that is not written yet. */
  get size(): number {
    return this.#waiting.size + this.#batch.size;
  }

  /** `recent`: the polls of this target before, by this owner; null for a task. */
  record(
    target: string,
    fence: number,
    outcome: WorkOutcome,
    recent: PollHistory | null = null,
  ): void {
    if (this.#isClosed) return;
    const before = this.#waiting.get(target);
    if (before !== undefined && before.fence > fence) {
      this.#rt.events.emit('result.refused', { target, fence, seen: before.fence });
      return;
    }
    const result = this.#stored(outcome);
    recent?.add(result.at, result.tookMs, result.ok);
    this.#wait(target, { fence, result, recent });
  }

  /** Another instance may need a waiting result: the next request is sent at once. */
  hurry(): void {
    if (this.#timer === null || this.#pauseMs > 0) return;
    this.#disarm();
    this.#timer = this.#rt.clock.after(0, () => this.#onTimer());
  }

  /** The target is removed: drops its waiting result, and removes the one that was written. */
  remove(target: string): void {
    this.#waiting.delete(target);
    const fence = this.#sent.get(target);
    if (fence === undefined || this.#isClosed) return;
    this.#wait(target, { fence, result: null, recent: null });
  }

  /** Writes all waiting results now. Those that cannot be written in time keep waiting. */
  async flush(withinMs = TIMEOUT_MS): Promise<void> {
    const leftMs = timeLeft(this.#rt.clock, withinMs);
    const flushed = this.#begin(() => this.#writeAll(leftMs));
    await isDoneWithin(this.#rt.clock, withinMs, flushed);
  }

  /** Flushes, and takes no more. Results that could not be written are lost. */
  async close(withinMs = TIMEOUT_MS): Promise<void> {
    this.#isClosed = true;
    await this.flush(Math.min(withinMs, TIMEOUT_MS));
    this.#waiting.clear();
    this.#disarm();
  }

  #stored({ ok, tookMs, error, value, nextInMs, ...rest }: WorkOutcome): StoredResult {
    const copied = value === undefined ? undefined : plainCopy(value, MAX_VALUE_CHARS);
    const at = Math.round(this.#rt.clock.wallMs());
    return {
      ...rest,
      at,
      by: this.#rt.instanceId,
      ok,
      tookMs: Math.round(tookMs * 10) / 10,
      ...(error !== undefined && { error: error.slice(0, MAX_ERROR_CHARS) }),
      ...(copied !== undefined && { value: copied }),
      ...(nextInMs !== undefined && { nextAt: Math.round(at + nextInMs) }),
    };
  }

  #wait(target: string, waiting: Waiting): void {
    this.#waiting.set(target, waiting);
    if (this.#writing !== null) return;
    if (this.#waiting.size >= BATCH && this.#pauseMs === 0)
      void this.#begin(() => this.#writeFull());
    else this.#arm();
  }

  #onTimer(): void {
    this.#timer = null;
    void this.#begin(async () => {
      if (await this.#write(TIMEOUT_MS)) await this.#writeFull();
    });
  }

  /** One after the other: a result must not overtake an earlier one of its target. */
  #begin(work: () => Promise<void>): Promise<void> {
    this.#disarm();
    const before = this.#writing;
    const writing = (async () => {
      await before;
      await work();
    })();
    this.#writing = writing;
    return writing.then(() => {
      if (this.#writing === writing) this.#rest();
    });
  }

  #rest(): void {
    this.#writing = null;
    if (!this.#isClosed && this.#waiting.size > 0) this.#arm();
  }

  #arm(): void {
    const { clock, random } = this.#rt;
    const delayMs = this.#pauseMs > 0 ? jittered(this.#pauseMs, random) : LINGER_MS;
    this.#timer ??= clock.after(delayMs, () => this.#onTimer());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  async #writeFull(): Promise<void> {
    while (this.#waiting.size >= BATCH) if (!(await this.#write(TIMEOUT_MS))) return;
  }

  async #writeAll(leftMs: () => number): Promise<void> {
    while (this.#waiting.size > 0) if (!(await this.#write(leftMs()))) return;
  }

  /** Writes one batch; false if some of it has to be written again. Never throws. */
  async #write(timeoutMs: number): Promise<boolean> {
    const batch = this.#take();
    this.#batch = batch;
    const replies = await this.#send(batch, timeoutMs);
    this.#batch = new Map();
    const again = this.#onReplies(batch, replies);
    const isWhole = again === batch.size && again > 0;
    if (again === 0) this.#pauseMs = 0;
    // Some were written, so the store is available: the others need not wait long.
    else this.#pauseMs = isWhole ? this.#longerPause() : MIN_PAUSE_MS;
    return again === 0;
  }

  /** One reply for each of the batch, by target. Never throws. */
  async #send(
    batch: ReadonlyMap<string, Waiting>,
    timeoutMs: number,
  ): Promise<ReadonlyMap<string, PutReply | RemoveReply>> {
    const { records } = this.#rt.store;
    const writes: RecordWrite[] = [];
    const removals: RecordRef[] = [];
    for (const [id, { fence, result, recent }] of batch) {
      this.#sent.set(id, fence);
      // Listed only now: most results of an often polled target are replaced before.
      if (result === null) removals.push({ id, fence });
      else writes.push({ id, fence, value: { ...result, recent: recent?.list() ?? [] } });
    }
    const [written, removed] = await Promise.all([
      repliesTo(writes, (these) => records.put(RESULT_COLLECTION, these, { timeoutMs })),
      repliesTo(removals, (these) => records.remove(RESULT_COLLECTION, these, { timeoutMs })),
    ]);
    return new Map<string, PutReply | RemoveReply>([...written, ...removed]);
  }

  #longerPause(): number {
    return Math.min(Math.max(this.#pauseMs * 2, MIN_PAUSE_MS), MAX_PAUSE_MS);
  }

  #take(): Map<string, Waiting> {
    const batch = new Map<string, Waiting>();
    for (const [target, waiting] of this.#waiting) {
      if (batch.size === BATCH) break;
      batch.set(target, waiting);
    }
    for (const target of batch.keys()) this.#waiting.delete(target);
    return batch;
  }

  /** Reports the failed and refused writes. Returns how many results are to be written again. */
  #onReplies(
    batch: ReadonlyMap<string, Waiting>,
    replies: ReadonlyMap<string, PutReply | RemoveReply>,
  ): number {
    const { events } = this.#rt;
    const failures: Error[] = [];
    let again = 0;
    for (const [target, reply] of replies) {
      const waiting = batch.get(target);
      if (waiting === undefined) continue;
      const { fence, result } = waiting;
      // Any other answer: a later owner has written the record, and removes it.
      if (result === null && reply.kind !== 'failed') this.#sent.delete(target);
      else if (reply.kind === 'stale')
        events.emit('result.refused', { target, fence, seen: reply.seen });
      if (reply.kind !== 'failed') continue;
      failures.push(reply.error);
      // A foreign key will be in the way the next time, too.
      if (reply.error instanceof KeyForeignError) continue;
      again++;
      if (!this.#waiting.has(target)) this.#waiting.set(target, waiting);
    }
    const [error] = failures;
    if (error !== undefined) events.emit('result.failed', { count: failures.length, error });
    return again;
  }
}

/** The replies by id; all have failed if the request has. */
async function repliesTo<W extends RecordRef, R extends PutReply | RemoveReply>(
  requests: readonly W[],
  send: (requests: readonly W[]) => Promise<R[]>,
): Promise<readonly (readonly [string, R | Failed])[]> {
  if (requests.length === 0) return [];
  const replies = await send(requests).catch((error: unknown) => requests.map(() => failed(error)));
  return requests.map(({ id }, i) => [id, replies[i] ?? failed('the store gave no reply')]);
}

function failed(error: unknown): Failed {
  return { kind: 'failed', error: error instanceof Error ? error : new Error(String(error)) };
}
