import type { PortableClock } from '../core/portable-clock.ts';

/** Its signal aborts with the caller’s, or when no data came within the time limit. */
export class TimeoutWatch {
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #clock: PortableClock;
  readonly #caller: AbortSignal | undefined;
  readonly #onAbort = () => this.#over.abort(this.#caller?.reason);
  #timer: { cancel(): void } | null = null;

  constructor(clock: PortableClock, caller: AbortSignal | undefined) {
    this.signal = this.#over.signal;
    this.#clock = clock;
    this.#caller = caller;
    if (caller?.aborted) this.#onAbort();
    caller?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Aborts after this time, unless it is restarted before. */
  restart(ms: number): void {
    this.#timer?.cancel();
    const error = new Error(`no data for ${Math.round(ms)} ms`);
    this.#timer = this.#clock.after(Math.max(0, ms), () => this.#over.abort(error));
  }

  end(): void {
    this.#timer?.cancel();
    this.#caller?.removeEventListener('abort', this.#onAbort);
  }
}
