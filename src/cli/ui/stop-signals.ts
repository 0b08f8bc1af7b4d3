const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * The signals that end a command: the first asks it to stop, the second ends it at once. A process
 * that `holdfast up --processes` started may get each of them twice: from a terminal or a service
 * manager, and from its parent. So further signals do nothing there, and its parent kills it.
 */
export class StopSignals {
  readonly #asked = new AbortController();
  readonly #insisted = new AbortController();
  readonly #listeners = SIGNALS.map((signal) => [signal, () => this.#handle(signal)] as const);
  readonly #whenAsked = fired(this.#asked.signal);
  readonly #whenInsisted = fired(this.#insisted.signal);

  readonly #isChild: boolean;

  constructor({ isChild = false }: { isChild?: boolean } = {}) {
    this.#isChild = isChild;
    for (const [signal, listener] of this.#listeners) process.on(signal, listener);
  }

  /** Aborts with the first signal, which is the reason. */
  get asked(): AbortSignal {
    return this.#asked.signal;
  }

  /** Resolves with the first signal. */
  async whenAsked(): Promise<void> {
    await this.#whenAsked;
  }

  /** The result of the promise, or null if the first signal comes before it. */
  unlessAsked<T>(promise: Promise<T>): Promise<T | null> {
    return Promise.race([promise, this.#whenAsked.then(() => null)]);
  }

  /** The result of the promise, or the second signal if it comes before that. */
  unlessInsisted<T>(promise: Promise<T>): Promise<T | NodeJS.Signals> {
    return Promise.race([promise, this.#whenInsisted]);
  }

  /** Restores the default effect of signals. */
  close(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
  }

  #handle(signal: NodeJS.Signals): void {
    if (this.asked.aborted && !this.#isChild) this.#insisted.abort(signal);
    else this.#asked.abort(signal);
  }
}

function fired(signal: AbortSignal): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const onAbort = () => resolve(signal.reason as NodeJS.Signals);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
