/**
 * When a PostgreSQL server may have lost grants, and so makes no new ones: its quarantine.
 *
 * A plain restart loses nothing: every grant is on the disk before it is answered. A standby that
 * is promoted may lack the last grants; it writes on a new **timeline**, and each acquire compares
 * that with the marker, in its own transaction. So no client needs to notice a failover. If the
 * address says `?standbys=synchronous` and the grants waited for one, nothing is lost either.
 * A restored copy shows by another system identifier or timeline, dropped tables by another
 * `origin`, and a disk that was set back by a position in the WAL before one that this process has
 * seen confirmed, or by an era that it has left. These are compared when a connection is made.
 */
import type { Clock } from '../../core/clock.ts';
import { StoreUnsuitableError } from '../../core/errors.ts';
import type { BaseRuntime } from '../../core/runtime.ts';
import {
  boundsProblem,
  KEYSPACE_NAMES,
  type Keyspace,
  keyspaceOf,
  type MaxTtls,
  QUARANTINE_MARGIN_MS,
} from '../port/keyspaces.ts';
import { QuarantineEmitter } from '../quarantine-emitter.ts';

/** A process remembers at most so many eras that it has left. It drops the oldest first. */
const MAX_ERAS = 100;

/** What the server says about its era. `since`: how long ago it may have lost grants, in µs. */
export interface EraReply {
  readonly era: string;
  readonly since: number | null;
  /** Why this very call began the era; absent if it did not. */
  readonly began?: string | null;
  /** A position in the WAL that is on the disk, and its timeline. */
  readonly position?: number;
  readonly timeline?: string;
}

interface ExamineReply extends EraReply {
  readonly origin: string;
  readonly bounds: string | null;
}

export interface QuarantineOptions {
  readonly quarantine: 'on' | 'off';
  /** Null for an observer, which is granted nothing. */
  readonly maxTtls: MaxTtls | null;
  readonly standbys: 'any' | 'synchronous';
}

export class PostgresQuarantine {
  readonly #rt: BaseRuntime;
  readonly #clock: Clock;
  readonly #store: string;
  readonly #options: QuarantineOptions;
  readonly #emitter: QuarantineEmitter;
  readonly #left = new Set<string>();
  #origin: string | null = null;
  #position = 0;
  #timeline = '';
  #era = '';
  #forgotAtMs: number | null = null;

  constructor(rt: BaseRuntime, store: string, options: QuarantineOptions) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#store = store;
    this.#options = options;
    this.#emitter = new QuarantineEmitter(rt.events, store, (keyspace) => this.#leftMs(keyspace));
  }

  get maxTtls(): MaxTtls | null {
    return this.#options.maxTtls;
  }

  get standbys(): string {
    return this.#options.standbys;
  }

  /** How long the keyspace of a key is in quarantine after a loss; 0 where quarantine is off. */
  boundMs(key: string): number {
    const { quarantine, maxTtls } = this.#options;
    if (quarantine === 'off' || maxTtls === null) return 0;
    return maxTtls[keyspaceOf(key)] + QUARANTINE_MARGIN_MS;
  }

  /** The longest of them. */
  get longestBoundMs(): number {
    const { quarantine, maxTtls } = this.#options;
    if (quarantine === 'off' || maxTtls === null) return 0;
    return Math.max(...KEYSPACE_NAMES.map((name) => maxTtls[name])) + QUARANTINE_MARGIN_MS;
  }

  /** Whether this process is granted nothing, however long it waits. */
  get isBarred(): boolean {
    return this.#options.maxTtls === null && this.#options.quarantine === 'on';
  }

  /** The request of `server_examine`. */
  get examination(): string {
    const { maxTtls, standbys } = this.#options;
    const bounds = maxTtls === null ? null : JSON.stringify(maxTtls);
    const left = [...this.#left];
    return JSON.stringify({
      standbys,
      origin: this.#origin,
      position: this.#position,
      timeline: this.#timeline,
      era: this.#era,
      left,
      bounds,
    });
  }

  /** Takes over the answer of `server_examine`. Throws if the store has other bounds. */
  examined(text: string): void {
    const reply = JSON.parse(text) as ExamineReply;
    const { maxTtls } = this.#options;
    if (maxTtls !== null && reply.bounds !== null) {
      const problem = boundsProblem(JSON.parse(reply.bounds) as Partial<MaxTtls>, maxTtls);
      if (problem !== null)
        throw new StoreUnsuitableError({ store: this.#store, problems: [problem] });
    }
    this.#origin ??= reply.origin;
    this.adopt(reply);
  }

  /** Takes over what a verb has found. */
  adopt({ era, since, began, position = 0, timeline = this.#timeline }: EraReply): void {
    const isComparable = timeline === this.#timeline && era === this.#era;
    this.#position = Math.max(isComparable ? this.#position : 0, position);
    this.#timeline = timeline;
    if (era === this.#era) return;
    if (this.#era !== '') this.#left.add(this.#era);
    for (const oldest of this.#left) {
      if (this.#left.size <= MAX_ERAS) break;
      this.#left.delete(oldest);
    }
    this.#era = era;
    // Measured from the answer, later than the server meant: too long a wait is safe.
    this.#forgotAtMs = since === null ? null : this.#clock.monotonicMs() - since / 1_000;
    if (began) this.#rt.events.emit('store.forgot', { store: this.#store, why: began });
    this.#emitter.begin();
  }

  /** Emits `store.quarantined` once per quarantine, for keyspaces that this process acquires in. */
  announce(keys: Iterable<string>): void {
    for (const keyspace of new Set([...keys].map(keyspaceOf))) this.#emitter.leftMs(keyspace);
  }

  #leftMs(keyspace: Keyspace): number {
    const { quarantine, maxTtls } = this.#options;
    if (quarantine === 'off') return 0;
    if (maxTtls === null) return Number.POSITIVE_INFINITY;
    if (this.#forgotAtMs === null) return 0;
    const untilMs = this.#forgotAtMs + maxTtls[keyspace] + QUARANTINE_MARGIN_MS;
    return Math.max(0, untilMs - this.#clock.monotonicMs());
  }
}
