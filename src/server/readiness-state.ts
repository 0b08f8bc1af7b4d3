/**
 * Says whether this instance can take work, and if not, why, in sentences for people. Each part of
 * the process that can fail adds a check. One cheap read checks the store, shared by all callers.
 */
import type { Clock } from '../core/clock.ts';
import type { Holdfast } from '../holdfast.ts';

/** The fault of a part now, or null. A check answers from memory: it does no I/O. */
export type Check = () => string | null;

/** A store that takes longer than this is unusable. */
const STORE_TIMEOUT_MS = 1_000;
/** How long a result of the store is reused, however many clients ask. */
const REUSE_MS = 1_000;
/** Any key serves: the result of the read is not used. */
const PROBE_KEY = 'readyz';

const UNREACHABLE = 'the store is unreachable';
const SLOW = `the store did not answer within ${STORE_TIMEOUT_MS} ms`;
const CLOSING = 'this instance is closing';
const FLEET_STALLED = 'its poller cannot see the fleet';
const WORKER_STALLED = 'its worker cannot read sessions';

/** One read of the store. */
interface Probe {
  /** The store’s fault, or null; after `STORE_TIMEOUT_MS`, that no answer came. */
  result: Promise<string | null>;
  /** Until when `result` is reused; Infinity during the read, so that there is only one. */
  freshUntilMs: number;
}

/** The checks behind `/readyz`. */
export interface Readiness {
  /** Adds a check, or replaces the one of this name. The returned function removes it. */
  add(name: string, check: Check): () => void;
  close(): void;
  /** Everything that is wrong; empty where this instance can take work. */
  reasons(): Promise<string[]>;
}

export class ReadinessState implements Readiness {
  readonly #holdfast: Pick<Holdfast, 'inspect' | 'on'>;
  readonly #clock: Clock;
  readonly #checks = new Map<string, Check>();
  readonly #unsubscribes: readonly (() => void)[];
  #probe: Probe | null = null;

  /** `closing` fires when the server closes. */
  constructor(holdfast: Pick<Holdfast, 'inspect' | 'on'>, clock: Clock, closing: AbortSignal) {
    this.#holdfast = holdfast;
    this.#clock = clock;
    this.add('closing', () => (closing.aborted ? CLOSING : null));
    const nameOf = ({ processor }: { processor: string }) => `processor ${processor}`;
    this.#unsubscribes = [
      holdfast.on('fleet.stalled', () => this.add('fleet', () => FLEET_STALLED)),
      holdfast.on('fleet.resumed', () => this.#checks.delete('fleet')),
      holdfast.on('worker.stalled', () => this.add('sessions', () => WORKER_STALLED)),
      holdfast.on('worker.resumed', () => this.#checks.delete('sessions')),
      holdfast.on('processor.stalled', (facts) =>
        this.add(nameOf(facts), () => `its ${nameOf(facts)} cannot take actions`),
      ),
      holdfast.on('processor.resumed', (facts) => this.#checks.delete(nameOf(facts))),
    ];
  }

  add(name: string, check: Check): () => void {
    this.#checks.set(name, check);
    return () => {
      if (this.#checks.get(name) === check) this.#checks.delete(name);
    };
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  async reasons(): Promise<string[]> {
    const ofStore = await this.#checkStore();
    const known = [...this.#checks.values()].map((check) => check());
    return [ofStore, ...known].filter((reason) => reason !== null);
  }

  #checkStore(): Promise<string | null> {
    if (this.#probe === null || this.#probe.freshUntilMs <= this.#clock.monotonicMs())
      this.#probe = this.#startProbe();
    return this.#probe.result;
  }

  #startProbe(): Probe {
    const clock = this.#clock;
    const answered = new AbortController();
    const answer = this.#holdfast.inspect(PROBE_KEY).then(
      () => null,
      () => UNREACHABLE,
    );
    const timeout = clock.sleep(STORE_TIMEOUT_MS, answered.signal).then(
      () => SLOW,
      () => null,
    );
    const probe: Probe = {
      result: Promise.race([answer, timeout]),
      freshUntilMs: Number.POSITIVE_INFINITY,
    };
    void answer.then(() => {
      answered.abort();
      probe.result = answer;
      probe.freshUntilMs = clock.monotonicMs() + REUSE_MS;
    });
    return probe;
  }
}
