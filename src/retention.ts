/**
 * Forgets what has been kept for long enough: sessions that have ended, dead letters, and what the shared log says. Nothing else of Holdfast
 * does; so where nobody runs this, all of it stays, but for the log, which has a largest size.
 *
 * Any number of instances may do it at once: what one has forgotten the others do not find. Where they are told different times, the
 * shortest counts. Sessions and dead letters are dated by the store's wall clock, and their age is taken from this instance's; the log's
 * from the store's own.
 */

import type { Clock } from './core/clock.ts';
import { type Duration, durationMs } from './core/duration.ts';
import { ConfigError } from './core/errors.ts';
import type { Emitter } from './core/events.ts';
import { Loop } from './core/loop.ts';
import { checkKnown } from './core/options.ts';
import { jittered, type Random } from './core/random.ts';
import type { Store } from './store/port/store.ts';

export interface RetentionOptions {
  /** How long sessions from intents are kept after they have ended; default 24 hours. */
  sessions?: Duration;
  /** How long work that was tried as often as it may be is kept; default 7 days. */
  deadLetters?: Duration;
  /** How long what happened is kept in the shared log, which has 100,000 entries at most; default 24 hours. */
  history?: Duration;
}

export interface RetentionParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
}

const KNOWN = new Set(['sessions', 'deadLetters', 'history']);
const DEFAULTS = { sessions: '24h', deadLetters: '7d', history: '24h' } as const;
const LEAST_MS = 1_000;
const MOST_MS = 3_650 * 86_400_000;

const EVERY_MS = 60_000;
const CALL = { timeoutMs: 5_000 };
/** Sessions forgotten in one request. */
const PRUNE_MOST = 500;
/** Of each sort, forgotten in one round; the next one goes on. */
const ROUND_MOST = 10_000;

export class Retention {
  readonly #parts: RetentionParts;
  readonly #keptMs: Readonly<Record<keyof RetentionOptions, number>>;
  readonly #chore: Loop;
  #isRunning = false;

  constructor(parts: RetentionParts, options: RetentionOptions = {}) {
    this.#parts = parts;
    this.#keptMs = readRetention(options);
    this.#chore = new Loop(parts, {
      everyMs: EVERY_MS,
      round: () => this.#round(),
      onStalled: (error) => parts.events.emit('sweep.failed', { error }),
      onResumed: () => {},
    });
  }

  /** Looks now, and then about once a minute, for what has been kept for long enough. */
  start(): this {
    if (this.#isRunning) return this;
    this.#isRunning = true;
    void this.#chore.start();
    return this;
  }

  /** Resolves when nothing of it is under way any more. */
  stop(): Promise<void> {
    this.#isRunning = false;
    return this.#chore.stop();
  }

  /** Says when to come back. */
  async #round(): Promise<number> {
    const { events, clock, random } = this.#parts;
    const nowMs = clock.wallMs();
    const swept = { sessions: 0, deadLetters: 0, entries: 0 };
    try {
      await eachForItself([
        async () => {
          swept.sessions = await this.#forgetSessions(nowMs - this.#keptMs.sessions);
        },
        () =>
          this.#dropLetters(nowMs - this.#keptMs.deadLetters, (count) => {
            swept.deadLetters = count;
          }),
        async () => {
          swept.entries = await this.#trimLog();
        },
      ]);
    } finally {
      if (Object.values(swept).some((count) => count > 0)) events.emit('retention.swept', swept);
    }
    return jittered(EVERY_MS, random);
  }

  async #forgetSessions(endedBeforeMs: number): Promise<number> {
    const { intents } = this.#parts.store;
    const call = { ...CALL, endedBeforeMs, most: PRUNE_MOST };
    return this.#repeat(async (count) => {
      const pruned = await intents.prune(call);
      return { count: count + pruned, isOver: pruned < PRUNE_MOST };
    });
  }

  async #dropLetters(beforeMs: number, onDropped: (count: number) => void): Promise<void> {
    const { streams } = this.#parts.store;
    let count = 0;
    const dropOf = async (stream: string) => {
      count = await this.#repeat(async (before) => {
        const { entries, more } = await streams.dead(stream, CALL);
        const old = entries.filter(({ atMs }) => atMs < beforeMs).map(({ id }) => id);
        if (old.length === 0) return { count: before, isOver: true };
        const dropped = await streams.drop(stream, old, CALL);
        // None: another instance was faster, and is at it.
        const isOver = dropped === 0 || !more || old.length < entries.length;
        return { count: before + dropped, isOver };
      }, count);
      onDropped(count);
    };
    const names = await streams.names(CALL);
    await eachForItself(names.map((stream) => () => dropOf(stream)));
  }

  #trimLog(): Promise<number> {
    const call = { ...CALL, keptMs: this.#keptMs.history };
    return this.#repeat(async (count) => {
      const dropped = await this.#parts.store.log.trim(call);
      return { count: count + dropped, isOver: dropped === 0 };
    });
  }

  /** Until it is over, or enough for one round, or nobody wants it any more. */
  async #repeat(
    step: (count: number) => Promise<{ count: number; isOver: boolean }>,
    before = 0,
  ): Promise<number> {
    let reached = { count: before, isOver: false };
    while (this.#isRunning && !reached.isOver && reached.count < ROUND_MOST)
      reached = await step(reached.count);
    return reached.count;
  }
}

/** One after the other. What one of them can not forget keeps nobody from forgetting the rest; the first failure is thrown at the end. */
async function eachForItself(jobs: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const job of jobs) await job().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}

/** For how many milliseconds each is kept; or a `CONFIG_INVALID`. */
function readRetention(
  options: RetentionOptions,
): Readonly<Record<keyof RetentionOptions, number>> {
  checkKnown(options, KNOWN);
  const read = (name: keyof RetentionOptions) => {
    const value = options[name] ?? DEFAULTS[name];
    const field = `retention.${name}`;
    const ms = durationMs(value, field);
    if (ms >= LEAST_MS && ms <= MOST_MS) return ms;
    throw new ConfigError({ field, value, rule: 'it is from 1s to 3650d' });
  };
  return {
    sessions: read('sessions'),
    deadLetters: read('deadLetters'),
    history: read('history'),
  };
}
