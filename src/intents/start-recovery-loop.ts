/**
 * Finds what no event reports: sessions that wait for a worker although the stream of starts has
 * lost them, and a generated secret that the store has lost. Every instance that accepts intents
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
      for await (const { sessions } of openSessions(this.#rt)) {
        await putBackLost(this.#rt, sessions);
        if (!this.#isRunning) return;
      }
      await this.#secrets.refresh();
    } catch (error) {
      this.#rt.events.emit('sweep.failed', { error });
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
