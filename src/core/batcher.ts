interface Pending<T, R> {
  readonly item: T;
  resolve(answer: R): void;
  reject(error: unknown): void;
}

/**
 * Many calls, one request at a time: items submitted in one turn, or while a request is under way,
 * go together in the next request. No item waits for a timer.
 */
export class Batcher<T, R> {
  /** Answers each item, in order. */
  readonly #send: (items: readonly T[]) => Promise<readonly R[]>;
  /** How many items one request has at most. */
  readonly #maxItems: number;
  readonly #pending: Pending<T, R>[] = [];
  #isSending = false;

  constructor(send: (items: readonly T[]) => Promise<readonly R[]>, maxItems: number) {
    this.#send = send;
    this.#maxItems = maxItems;
  }

  /** Rejects with the error of its request. */
  submit(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ item, resolve, reject });
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    // The rest of this turn may submit items, too.
    await null;
    while (this.#pending.length > 0) await this.#sendBatch(this.#pending.splice(0, this.#maxItems));
    this.#isSending = false;
  }

  async #sendBatch(batch: readonly Pending<T, R>[]): Promise<void> {
    try {
      const answers = await this.#send(batch.map(({ item }) => item));
      for (const [i, { resolve }] of batch.entries()) resolve(answers[i] as R);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
