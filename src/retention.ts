/**
 * Forgets old data: ended sessions, dead letters, and old entries of the shared log. Nothing else
 * in Holdfast does. Without a `Retention`, all of it stays, except that the log has a maximum size.
 *
 * Any number of instances may do it at once: the first one forgets an entry, the others do not find
 * it. If they have different times, the shortest counts. The age of sessions and dead letters is
 * the difference between the store's wall clock, which dated them, and this instance's. The store
 * alone measures the age of log entries.
 */

import { type Duration, durationMs } from './core/duration.ts';
import { ConfigError } from './core/errors.ts';
import { Loop } from './core/loop.ts';
import { checkKnown } from './core/options.ts';
import { jittered } from './core/random.ts';
import type { Runtime } from './store/runtime.ts';

export interface RetentionOptions {
  /** How long sessions from intents are kept after they have ended; default 24 hours. */
  sessions?: Duration;
  /** How long dead letters are kept; default 7 days. */
  deadLetters?: Duration;
  /** How long the shared log keeps its entries, at most 100,000 of them; default 24 hours. */
  history?: Duration;
}

type RetentionRuntime = Pick<Runtime, 'store' | 'clock' | 'random' | 'events'>;

const KNOWN = new Set(['sessions', 'deadLetters', 'history']);
const DEFAULTS = { sessions: '24h', deadLetters: '7d', history: '24h' } as const;
const LEAST_MS = 1_000;
const MOST_MS = 3_650 * 86_400_000;

const EVERY_MS = 60_000;
const CALL = { timeoutMs: 5_000 };
/** Sessions forgotten in one request. */
const PRUNE_MOST = 500;
/** Entries of each sort forgotten in one round. The next round continues. */
const ROUND_MOST = 10_000;

export class Retention {
  readonly #rt: RetentionRuntime;
  readonly #keptMs: Readonly<Record<keyof RetentionOptions, number>>;
  readonly #loop: Loop;
  #isRunning = false;

  constructor(rt: RetentionRuntime, options: RetentionOptions = {}) {
    this.#rt = rt;
    this.#keptMs = readRetention(options);
    this.#loop = new Loop(rt, {
      everyMs: EVERY_MS,
      round: () => this.#round(),
      onStalled: (error) => rt.events.emit('sweep.failed', { error }),
      onResumed: () => {},
    });
  }

  /** Looks for old data now, and then about once a minute. */
  start(): this {
    if (this.#isRunning) return this;
    this.#isRunning = true;
    void this.#loop.start();
    return this;
  }

  /** Resolves when no round is under way any more. */
  stop(): Promise<void> {
    this.#isRunning = false;
    return this.#loop.stop();
  }

  /** Returns in how many milliseconds the next round is due. */
  async #round(): Promise<number> {
    const { events, clock, random } = this.#rt;
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
    const { intents } = this.#rt.store;
    const call = { ...CALL, endedBeforeMs, most: PRUNE_MOST };
    return this.#repeat(async (count) => {
      const pruned = await intents.prune(call);
      return { count: count + pruned, isOver: pruned < PRUNE_MOST };
    });
  }

  async #dropLetters(beforeMs: number, onDropped: (count: number) => void): Promise<void> {
    const { streams } = this.#rt.store;
    let count = 0;
    const dropOf = async (stream: string) => {
      count = await this.#repeat(async (before) => {
        const { entries, more } = await streams.dead(stream, CALL);
        const old = entries.filter(({ atMs }) => atMs < beforeMs).map(({ id }) => id);
        if (old.length === 0) return { count: before, isOver: true };
        const dropped = await streams.drop(stream, old, CALL);
        // None: another instance was faster, and continues.
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
      const dropped = await this.#rt.store.log.trim(call);
      return { count: count + dropped, isOver: dropped === 0 };
    });
  }

  /** Repeats `step` until it is over, the round has done enough, or `stop` was called. */
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

/** Runs all jobs, one after the other, even if some fail. Then throws the first failure. */
async function eachForItself(jobs: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const job of jobs) await job().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}

/** How many milliseconds each is kept. Throws `CONFIG_INVALID`. */
function readRetention(
  options: RetentionOptions,
): Readonly<Record<keyof RetentionOptions, number>> {
  checkKnown(options, KNOWN);
  const read = (name: keyof RetentionOptions) => {
    const value = options[name] ?? DEFAULTS[name];
    const field = `retention.${name}`;
    const ms = durationMs(value, field);
    if (ms >= LEAST_MS && ms <= MOST_MS) return ms;
    throw new ConfigError({ field, value, rule: 'it must be from 1s to 3650d' });
  };
  return {
    sessions: read('sessions'),
    deadLetters: read('deadLetters'),
    history: read('history'),
  };
}
