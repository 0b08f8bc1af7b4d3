interface Waiting<Q, R> {
  readonly question: Q;
  resolve(answer: R): void;
  reject(error: unknown): void;
}

/**
 * Many questions, one request at a time: what is asked in one turn, or while a request is under way, goes together in the next. A
 * process that works on much at once needs few requests for it, and none waits for a timer.
 */
export class Batcher<Q, R> {
  /** Answers each question, in order. */
  readonly #send: (questions: readonly Q[]) => Promise<readonly R[]>;
  /** How many go in one request. */
  readonly #most: number;
  readonly #waiting: Waiting<Q, R>[] = [];
  #isRunning = false;

  constructor(send: (questions: readonly Q[]) => Promise<readonly R[]>, most: number) {
    this.#send = send;
    this.#most = most;
  }

  ask(question: Q): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ question, resolve, reject });
      if (!this.#isRunning) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    // The rest of this turn may ask, too.
    await null;
    while (this.#waiting.length > 0) await this.#ask(this.#waiting.splice(0, this.#most));
    this.#isRunning = false;
  }

  async #ask(group: readonly Waiting<Q, R>[]): Promise<void> {
    try {
      const answers = await this.#send(group.map(({ question }) => question));
      for (const [i, { resolve }] of group.entries()) resolve(answers[i] as R);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}
