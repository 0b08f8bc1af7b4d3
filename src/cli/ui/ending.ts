const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Somebody wants the command to end: asks first, and insists with a second signal. */
export class Ending {
  readonly #asked = new AbortController();
  readonly #insisted = new AbortController();
  readonly #listeners = SIGNALS.map((signal) => [signal, () => this.#hear(signal)] as const);
  readonly #whenAsked = fired(this.#asked.signal);
  readonly #whenInsisted = fired(this.#insisted.signal);

  constructor() {
    for (const [signal, listener] of this.#listeners) process.on(signal, listener);
  }

  /** Fires with the first signal, which is its reason. */
  get asked(): AbortSignal {
    return this.#asked.signal;
  }

  /** Resolves when we are asked to end. */
  async whenAsked(): Promise<void> {
    await this.#whenAsked;
  }

  /** What the promise gives, or null if we are asked to end before that. */
  unlessAsked<T>(promise: Promise<T>): Promise<T | null> {
    return Promise.race([promise, this.#whenAsked.then(() => null)]);
  }

  /** What the promise gives, or the signal if somebody insists before that. */
  unlessInsisted<T>(promise: Promise<T>): Promise<T | NodeJS.Signals> {
    return Promise.race([promise, this.#whenInsisted]);
  }

  /** Signals do again what they do by default. */
  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }

  #hear(signal: NodeJS.Signals): void {
    if (this.asked.aborted) this.#insisted.abort(signal);
    else this.#asked.abort(signal);
  }
}

function fired(signal: AbortSignal): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const onAbort = () => resolve(signal.reason as NodeJS.Signals);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
