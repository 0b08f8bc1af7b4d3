/**
 * The outside world of the handlers under test: a database, a bank, a device. It lies behind a
 * network of its own, so a write may arrive late, and its reply may be lost.
 */
import { FenceStaleError } from '../../src/core/errors.ts';
import type { Counters } from '../sim/counters.ts';
import type { SimProcess } from '../sim/host.ts';
import type { NetworkParts } from '../sim/network.ts';
import { remoteCall } from '../sim/remote-store.ts';
import type { Trace } from '../sim/trace.ts';
import type { Effect, EffectAudit } from './effect-audit.ts';
import { type BegunWork, currentWork } from './work-log.ts';

export interface SinkWriteOptions {
  /** The sink refuses a write with a lower fence than it has seen for the same `to`. */
  fence?: number | undefined;
  /** The sink does nothing for a key that it knows, and returns the effect of the first write. */
  idempotencyKey?: string | undefined;
}

/** What handlers write to, in place of your database or service. */
export interface Sink {
  /**
   * Resolves with the effect. Rejects with `FENCE_STALE` if the sink refused it, and with
   * `SinkUnansweredError` after 5 seconds without a reply: the effect may have happened.
   */
  write(to: string, value: unknown, options?: SinkWriteOptions): Promise<Effect>;
  /** The last effect on it; null if there is none. */
  read(to: string): Promise<Effect | null>;
}

/** How your database or service behaves. */
export interface SinkRules {
  /** `ignored`: it takes writes with lower fences, too. Default `checked`. */
  fences?: 'checked' | 'ignored' | undefined;
  /** `ignored`: it does the same again for a key that it knows. Default `checked`. */
  keys?: 'checked' | 'ignored' | undefined;
}

/** A client of the sink waits so long for a reply. */
const SINK_TIMEOUT_MS = 5_000;
/** A value in a story is cut off after this. */
const SHOWN_CHARACTERS = 80;

/** No reply came: the effect has happened, will happen, or never happens. */
export class SinkUnansweredError extends Error {
  override readonly name = 'SinkUnansweredError';
  readonly code = 'SINK_UNANSWERED';

  constructor(to: string) {
    super(
      `'${to}' did not answer within ${SINK_TIMEOUT_MS / 1_000} s: the effect may have happened. Write again with the same idempotency key.`,
    );
  }
}

interface Write {
  readonly to: string;
  readonly value: unknown;
  readonly by: string;
  readonly fence: number | null;
  readonly idempotencyKey: string | null;
  readonly work: BegunWork | null;
}

export interface SinkServerParts {
  readonly process: SimProcess;
  readonly audit: EffectAudit;
  readonly counters: Counters;
  readonly trace: Trace;
  readonly rules: SinkRules;
  nowMs(): number;
}

/** The one sink of a world. */
export class SinkServer {
  readonly process: SimProcess;
  readonly #parts: SinkServerParts;
  readonly #fences = new Map<string, number>();
  readonly #byKey = new Map<string, Effect>();
  readonly #last = new Map<string, Effect>();

  constructor(parts: SinkServerParts) {
    this.#parts = parts;
    this.process = parts.process;
  }

  read(to: string): Effect | null {
    return this.#last.get(to) ?? null;
  }

  take({ work, ...write }: Write): Effect {
    const { audit, counters, rules, nowMs } = this.#parts;
    const { to, by, fence, idempotencyKey } = write;
    const seen = this.#fences.get(to) ?? 0;
    if (fence !== null && rules.fences !== 'ignored' && fence < seen) {
      counters.add('write refused: old fence');
      this.#note(write, 'refuses', ': its fence is old', work);
      throw new FenceStaleError({ resource: to, fence, seen });
    }
    if (fence !== null) this.#fences.set(to, Math.max(seen, fence));
    const key = idempotencyKey === null ? null : `${to}\n${idempotencyKey}`;
    const known = key === null ? undefined : this.#byKey.get(key);
    if (known !== undefined && rules.keys !== 'ignored') {
      counters.add('write not repeated: known key');
      this.#note(write, 'does not repeat', ': its key is known', work);
      return known;
    }
    const effect: Effect = { ...write, by, atMs: nowMs() };
    if (key !== null) this.#byKey.set(key, effect);
    this.#last.set(to, effect);
    counters.add('effect');
    this.#note(write, 'takes', '', work);
    audit.accepted(effect, work);
    return effect;
  }

  #note(
    { to, by, value }: Omit<Write, 'work'>,
    verb: string,
    why: string,
    work: BegunWork | null,
  ): void {
    const shown = JSON.stringify(value).slice(0, SHOWN_CHARACTERS);
    const about = work === null ? to : work.subject;
    this.#parts.trace.note(`'${to}'`, `${verb} ${shown} from ${by}${why}`, { about, to });
  }
}

export interface InstanceSinkParts {
  readonly network: Pick<NetworkParts, 'timeline' | 'process' | 'path' | 'counters'>;
  readonly server: SinkServer;
  readonly name: string;
  /** Called first in every call: it may be made from outside of the world. */
  enter(): void;
}

/** The sink as one instance reaches it. */
export class InstanceSink implements Sink {
  readonly #parts: InstanceSinkParts;

  constructor(parts: InstanceSinkParts) {
    this.#parts = parts;
  }

  async write(to: string, value: unknown, options: SinkWriteOptions = {}): Promise<Effect> {
    const { server, name: by } = this.#parts;
    const { fence = null, idempotencyKey = null } = options;
    const plain: unknown = JSON.parse(JSON.stringify(value) ?? 'null');
    const write = { to, value: plain, by, fence, idempotencyKey, work: currentWork() };
    return this.#call(to, () => server.take(write));
  }

  read(to: string): Promise<Effect | null> {
    return this.#call(to, () => this.#parts.server.read(to));
  }

  #call<T>(to: string, carryOut: () => T): Promise<T> {
    const { network, server, enter } = this.#parts;
    enter();
    network.process.reach('act');
    const unanswered = () => {
      network.counters.add('sink did not answer');
      return new SinkUnansweredError(to);
    };
    const parts = { network, server: server.process };
    return remoteCall(parts, { timeoutMs: SINK_TIMEOUT_MS, unanswered }, async () => carryOut());
  }
}
