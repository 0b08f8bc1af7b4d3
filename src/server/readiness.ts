/**
 * Whether this instance could take work now, and if not, why, in words for people. Whoever runs something in this process that can fail adds
 * a check of its own; the store is asked by one cheap read, whoever asks and however many.
 */
import type { Clock } from '../core/clock.ts';
import type { Holdfast } from '../holdfast.ts';

/** What is wrong now, or null. It answers from what is known: it must not ask anybody. */
export type Check = () => string | null;

export interface ReadinessParts {
  readonly holdfast: Pick<Holdfast, 'inspect' | 'on'>;
  readonly clock: Clock;
  /** Fires when the server ends. */
  readonly closing: AbortSignal;
}

/** A store that takes longer than this can not be worked with. */
const PATIENCE_MS = 1_000;
/** How long its answer is good for: a thousand who ask are one who asks the store. */
const REUSE_MS = 1_000;
/** Any key does: what is read of it is not looked at. */
const SOME_KEY = 'readyz';

const AWAY = 'the store can not be reached';
const LATE = `the store has not answered within ${PATIENCE_MS} ms`;
const CLOSING = 'this instance is closing';
const FLEET_STALLED = 'its poller can not see the fleet';
const WORKER_STALLED = 'its worker can not get at sessions';

/** One question to the store. */
interface Look {
  /** What to say: what came, or after a while that nothing did. */
  told: Promise<string | null>;
  /** Until when that may be said again; Infinity while the question is open: it is not asked a second time meanwhile. */
  freshUntilMs: number;
}

export class Readiness {
  readonly #parts: ReadinessParts;
  readonly #checks = new Map<string, Check>();
  readonly #unsubscribes: readonly (() => void)[];
  #look: Look | null = null;

  constructor(parts: ReadinessParts) {
    this.#parts = parts;
    const { holdfast, closing } = parts;
    this.add('closing', () => (closing.aborted ? CLOSING : null));
    const nameOf = ({ processor }: { processor: string }) => `processor ${processor}`;
    this.#unsubscribes = [
      holdfast.on('fleet.stalled', () => this.add('fleet', () => FLEET_STALLED)),
      holdfast.on('fleet.resumed', () => this.#checks.delete('fleet')),
      holdfast.on('worker.stalled', () => this.add('sessions', () => WORKER_STALLED)),
      holdfast.on('worker.resumed', () => this.#checks.delete('sessions')),
      holdfast.on('processor.stalled', (facts) =>
        this.add(nameOf(facts), () => `its ${nameOf(facts)} can not take actions`),
      ),
      holdfast.on('processor.resumed', (facts) => this.#checks.delete(nameOf(facts))),
    ];
  }

  /** A check under a name, instead of the one that had it. The function returned takes it back. */
  add(name: string, check: Check): () => void {
    this.#checks.set(name, check);
    return () => {
      if (this.#checks.get(name) === check) this.#checks.delete(name);
    };
  }

  /** Hears of nothing more. */
  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  /** Everything that is wrong; nothing where this instance can take work. */
  async reasons(): Promise<string[]> {
    const ofStore = await this.#askStore();
    const known = [...this.#checks.values()].map((check) => check());
    return [ofStore, ...known].filter((reason) => reason !== null);
  }

  #askStore(): Promise<string | null> {
    if (this.#look === null || this.#look.freshUntilMs <= this.#parts.clock.monotonicMs())
      this.#look = this.#begin();
    return this.#look.told;
  }

  #begin(): Look {
    const { holdfast, clock } = this.#parts;
    const heard = new AbortController();
    const answer = holdfast.inspect(SOME_KEY).then(
      () => null,
      () => AWAY,
    );
    const late = clock.sleep(PATIENCE_MS, heard.signal).then(
      () => LATE,
      () => null,
    );
    const look: Look = {
      told: Promise.race([answer, late]),
      freshUntilMs: Number.POSITIVE_INFINITY,
    };
    void answer.then(() => {
      heard.abort();
      look.told = answer;
      look.freshUntilMs = clock.monotonicMs() + REUSE_MS;
    });
    return look;
  }
}
