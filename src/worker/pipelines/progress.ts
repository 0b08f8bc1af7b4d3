import type { Clock, Timer } from '../../core/clock.ts';

/** How often it is written down at most. */
const EVERY_MS = 1_000;
/** What is longer, as JSON, is not written down. */
const MOST_CHARACTERS = 2_000;

/** What a pipeline says of itself: however often it does, the last of it is written down once a second at most. */
export class Progress {
  readonly #clock: Clock;
  readonly #write: (value: unknown) => Promise<boolean>;
  #waiting: { readonly value: unknown } | null = null;
  #timer: Timer | null = null;
  #isClosed = false;

  /** `write` says whether it could be written. */
  constructor({ clock }: { clock: Clock }, write: (value: unknown) => Promise<boolean>) {
    this.#clock = clock;
    this.#write = write;
  }

  report(value: unknown): void {
    if (this.#isClosed || !isShortJson(value)) return;
    this.#waiting = { value };
    if (this.#timer === null) this.#next();
  }

  /** What has not been written is not worth it any more. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #next(): void {
    this.#timer = null;
    const waiting = this.#waiting;
    if (waiting === null || this.#isClosed) return;
    this.#waiting = null;
    this.#timer = this.#clock.after(EVERY_MS, () => this.#next());
    // It is a courtesy: where the store is away, the next one tells more.
    this.#write(waiting.value).then(
      (isWritten) => isWritten || this.#keep(waiting),
      () => {},
    );
  }

  /** Not yet: it has said so before it is known to run, or somebody else changed the session just then. */
  #keep(value: { readonly value: unknown }): void {
    if (this.#isClosed) return;
    this.#waiting ??= value;
    this.#timer ??= this.#clock.after(EVERY_MS, () => this.#next());
  }
}

function isShortJson(value: unknown): boolean {
  try {
    return (JSON.stringify(value)?.length ?? Number.POSITIVE_INFINITY) <= MOST_CHARACTERS;
  } catch {
    return false;
  }
}
