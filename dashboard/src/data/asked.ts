/**
 * What a view asks the server for: once, again after a while as long as the view is seen, and again when an event says that it has changed.
 * One question at a time; what was known stays while the next answer is on its way, or does not come.
 */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { HoldfastApiError } from '../../../src/client/index.ts';
import { refused } from './access.ts';

interface Answer<T> {
  /** Null before the first answer. */
  readonly value: T | null;
  /** Why the last question has no answer. */
  readonly error: unknown;
  /** When the value came, on the browser's monotonic clock. */
  readonly seenAtMs: number | null;
}

export interface Asked<T> extends Answer<T> {
  /** Asks again: at once, or so much later, together with other requests for the same. */
  again(inMs?: number): void;
  /** Changes what is known, by what is known otherwise. */
  patch(change: (value: T) => T): void;
}

export interface Asking<T> {
  ask(signal: AbortSignal): Promise<T>;
  /** Another key is another question: what was known is forgotten. */
  readonly key?: string;
  /** How long after an answer it is asked again; not at all without it. May depend on what came. */
  readonly everyMs?: number | ((value: T | null) => number);
}

export function useAsked<T>(asking: Asking<T>): Asked<T> {
  const key = asking.key ?? '';
  const [answer, setAnswer] = useState<Answer<T> & { key: string }>({ ...NOTHING, key });
  const questions = useMemo(
    () => new Questions(asking, (next) => setAnswer({ ...next, key })),
    [key],
  );
  useEffect(() => {
    questions.begin();
    return () => questions.end();
  }, [questions]);
  const { value, error, seenAtMs } = answer.key === key ? answer : NOTHING;
  return {
    value,
    error,
    seenAtMs,
    again: (inMs = 0) => questions.again(inMs),
    patch: (change) => questions.patch(change),
  };
}

const NOTHING = { value: null, error: null, seenAtMs: null };

class Questions<T> {
  readonly #asking: Asking<T>;
  readonly #tell: (answer: Answer<T>) => void;
  #answer: Answer<T> = NOTHING;
  #over = new AbortController();
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** When it is asked again, on the browser's clock. */
  #dueMs = Number.POSITIVE_INFINITY;
  #isAsking = false;

  constructor(asking: Asking<T>, tell: (answer: Answer<T>) => void) {
    this.#asking = asking;
    this.#tell = tell;
  }

  begin(): void {
    this.#over = new AbortController();
    // Who looks again after a while should not see what was long ago.
    document.addEventListener('visibilitychange', () => this.#arm(), { signal: this.#over.signal });
    this.again(0);
  }

  end(): void {
    this.#over.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  again(inMs: number): void {
    this.#dueMs = Math.min(this.#dueMs, performance.now() + inMs);
    this.#arm();
  }

  patch(change: (value: T) => T): void {
    if (this.#answer.value === null) return;
    const value = change(this.#answer.value);
    if (value !== this.#answer.value) this.#set({ ...this.#answer, value });
  }

  #arm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    const mayAsk = !this.#isAsking && !this.#over.signal.aborted && Number.isFinite(this.#dueMs);
    if (!mayAsk || document.visibilityState === 'hidden') return;
    this.#timer = setTimeout(() => void this.#ask(), Math.max(0, this.#dueMs - performance.now()));
  }

  async #ask(): Promise<void> {
    const { signal } = this.#over;
    this.#isAsking = true;
    this.#dueMs = Number.POSITIVE_INFINITY;
    const answer = await this.#asking.ask(signal).then(
      (value) => ({ value, error: null, seenAtMs: performance.now() }),
      (error: unknown) => ({ ...this.#answer, error }),
    );
    this.#isAsking = false;
    if (signal.aborted) return;
    if (answer.error instanceof HoldfastApiError && answer.error.status === 401) return refused();
    this.#set(answer);
    const { everyMs } = this.#asking;
    if (everyMs !== undefined)
      this.again(typeof everyMs === 'number' ? everyMs : everyMs(answer.value));
    else this.#arm();
  }

  #set(answer: Answer<T>): void {
    this.#answer = answer;
    this.#tell(answer);
  }
}
