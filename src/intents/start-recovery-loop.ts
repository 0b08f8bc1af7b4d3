/**
 * Finds what no event reports: sessions that wait for a worker although the stream of starts has
 * lost them, kinds whose sessions have waited for long, and a generated secret that the store has
 * lost. Every instance that accepts intents
 * runs a recovery. Several may run at once, because the store decides for each session whether it
 * is lost.
 */
import type { Timer } from '../core/clock.ts';
import { jittered } from '../core/random.ts';
import type { StoredSession } from '../store/port/intent-store.ts';
import type { Runtime } from '../store/runtime.ts';
import type { SecretSet } from './secret-set.ts';
import { readable, reportForeign } from './session-reading.ts';

const EVERY_MS = 30_000;
const CALL = { timeoutMs: 5_000 };
/** Sessions that have waited this long for a worker are reported. */
const LONG_WAIT_MS = 30_000;
/** Sessions in one request. */
const PAGE_SIZE = 500;

export class StartRecoveryLoop {
  readonly #rt: Runtime;
  readonly #secrets: SecretSet;
  #isRunning = false;
  #timer: Timer | null = null;
  #round: Promise<void> = Promise.resolve();

  constructor(rt: Runtime, secrets: SecretSet) {
    this.#rt = rt;
    this.#secrets = secrets;
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#schedule();
  }

  /** Resolves when no round is under way any more. */
  stop(): Promise<void> {
    this.#isRunning = false;
    this.#timer?.cancel();
    this.#timer = null;
    return this.#round;
  }

  #schedule(): void {
    const { clock, random } = this.#rt;
    this.#timer = clock.after(jittered(EVERY_MS, random), () => {
      this.#round = this.#recover().then(() => {
        if (this.#isRunning) this.#schedule();
      });
    });
  }

  /** Never rejects: the next round tries again. */
  async #recover(): Promise<void> {
    try {
      const waiting = new Map<string, { count: number; waitedMs: number }>();
      for await (const { sessions } of openSessions(this.#rt)) {
        await putBackLost(this.#rt, sessions);
        this.#countWaiting(sessions, waiting);
        if (!this.#isRunning) return;
      }
      for (const [kind, facts] of waiting)
        this.#rt.events.emit('intent.waiting', { kind, ...facts });
      await this.#secrets.refresh();
    } catch (error) {
      this.#rt.events.emit('sweep.failed', { error });
    }
  }

  #countWaiting(
    sessions: readonly StoredSession[],
    waiting: Map<string, { count: number; waitedMs: number }>,
  ): void {
    const nowMs = this.#rt.clock.wallMs();
    for (const { kind, state, createdAtMs } of sessions) {
      const ageMs = nowMs - createdAtMs;
      if (state !== 'NEW' || ageMs < LONG_WAIT_MS) continue;
      const { count, waitedMs } = waiting.get(kind) ?? { count: 0, waitedMs: 0 };
      waiting.set(kind, { count: count + 1, waitedMs: Math.max(waitedMs, ageMs) });
    }
  }
}

interface OpenPage {
  /** Their bodies may be unreadable: `readable` tells. */
  readonly sessions: readonly StoredSession[];
  /** Ids whose keys a non-Holdfast program has overwritten. */
  readonly foreign: readonly string[];
}

/** All sessions that have not ended, a page at a time. */
export async function* openSessions({
  store,
  events,
}: Pick<Runtime, 'store' | 'events'>): AsyncGenerator<OpenPage, void> {
  let cursor: string | undefined;
  do {
    const page = await store.intents.list({ ...CALL, cursor, isOpen: true, most: PAGE_SIZE });
    const { sessions, foreign = [] } = page;
    reportForeign(events, foreign);
    yield { sessions, foreign };
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/**
 * Puts sessions that wait for a worker back into the stream of starts, if the stream has lost them.
 */
export async function putBackLost(
  { store, events }: Pick<Runtime, 'store' | 'events'>,
  sessions: readonly StoredSession[],
): Promise<void> {
  // No worker starts an unreadable session: it would be put back again and again.
  const waiting = sessions.filter(
    (stored) => stored.state === 'NEW' && readable(events, stored) !== null,
  );
  if (waiting.length === 0) return;
  const ids = waiting.map(({ id }) => id);
  const lost = new Set(await store.intents.republish(ids, CALL));
  for (const { id: session, tenant } of waiting)
    if (lost.has(session)) events.emit('intent.republished', { session, tenant });
}
