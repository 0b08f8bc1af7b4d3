/**
 * The slots of a pool as the store has them: looked at all at once, then asked for one by one, the first free one first. Calls of this
 * process never ask for the same slot at a time, so that as many as there are free slots are served by one look.
 */
import type { BusyReason } from '../../core/errors.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Store } from '../../store/port/store.ts';
import type { Lease } from '../lease.ts';
import type { Leases } from '../leases.ts';
import type { AcquireOptions } from '../options.ts';

/** A slot that was granted. */
export interface Taken {
  readonly ok: true;
  readonly slot: string;
  readonly lease: Lease;
}

/** What stands between a caller and a slot, or the error that kept it from knowing. */
export type Obstacle = { readonly reason: BusyReason; readonly expiresInMs: number } | Error;

/** For whom slots are asked. */
export interface Asker {
  readonly holder?: string;
  readonly signal?: AbortSignal;
  readonly untilReleased?: boolean;
}

export interface SlotsParts {
  readonly store: Store;
  readonly leases: Pick<Leases, 'acquire'>;
  readonly names: readonly string[];
  /** The key of a slot, and what it is called in the store. */
  keyOf(slot: string): string;
  readonly keyspace: string;
  readonly terms: AcquireOptions;
  readonly operationTimeoutMs: number;
}

export class Slots {
  readonly #parts: SlotsParts;
  /** What this process is asking for just now. */
  readonly #asked = new Map<string, Promise<unknown>>();

  constructor(parts: SlotsParts) {
    this.#parts = parts;
  }

  get names(): readonly string[] {
    return this.#parts.names;
  }

  async read(): Promise<ReadReply[]> {
    const { store, names, keyspace, keyOf, operationTimeoutMs } = this.#parts;
    const keys = names.map((slot) => keyspace + keyOf(slot));
    return store.leases.read(keys, { timeoutMs: operationTimeoutMs });
  }

  /** Looks at all of them. */
  async look(): Promise<View> {
    const shown = await this.read();
    return new View(this.names.map((slot, i) => [slot, obstacleOf(shown[i] as ReadReply)]));
  }

  /**
   * Asks for the first that is free, and for the next if another was faster. Leaves those alone that a call of this process is asking for,
   * unless it has no time to see what becomes of that.
   */
  async takeFree(view: View, asker: Asker, isHurried = false): Promise<Taken | null> {
    const next = () =>
      this.names.find((slot) => view.isFree(slot) && (isHurried || !this.#asked.has(slot)));
    for (let slot = next(); slot !== undefined; slot = next()) {
      const asking = this.#ask(view, slot, asker);
      this.#asked.set(slot, asking);
      const taken = await asking;
      if (taken !== null) return taken;
    }
    return null;
  }

  /** Resolves when nothing that this process has asked for by now is still to be answered. */
  async answered(): Promise<void> {
    await Promise.all(this.#asked.values());
  }

  /** Asks for one of them, and waits for it if the options say so. */
  acquire(slot: string, asker: Asker, waitMs = 0): ReturnType<Leases['acquire']> {
    const { leases, terms, keyOf } = this.#parts;
    return leases.acquire(keyOf(slot), { ...terms, ...asker, wait: waitMs });
  }

  async #ask(view: View, slot: string, asker: Asker): Promise<Taken | null> {
    try {
      const result = await this.acquire(slot, asker);
      if (result.ok) {
        view.note(slot, { reason: 'held', expiresInMs: result.lease.remainingMs() });
        return { ok: true, slot, lease: result.lease };
      }
      view.note(slot, result);
      view.isOutdated ||= result.reason === 'held';
    } catch (error) {
      // The others that fail with it need not be tried: each would take as long to say so.
      const lane = this.#laneOf(slot);
      for (const other of this.names)
        if (view.isFree(other) && this.#laneOf(other) === lane) view.note(other, asError(error));
    } finally {
      this.#asked.delete(slot);
    }
    return null;
  }

  #laneOf(slot: string): string {
    const { store, keyspace, keyOf } = this.#parts;
    return store.leases.lane?.(keyspace + keyOf(slot)) ?? '';
  }
}

/** What one look has shown, and what was learned by asking since. */
export class View {
  readonly #obstacles: Map<string, Obstacle | null>;
  /** Somebody was faster: another slot may have become free since the look. */
  isOutdated = false;

  constructor(seen: readonly (readonly [slot: string, Obstacle | null])[]) {
    this.#obstacles = new Map(seen);
  }

  isFree(slot: string): boolean {
    return this.#obstacles.get(slot) === null;
  }

  note(slot: string, obstacle: Obstacle): void {
    this.#obstacles.set(slot, obstacle);
  }

  /** What stands in the way, of each slot that is not free. */
  obstacles(): readonly Obstacle[] {
    return [...this.#obstacles.values()].filter((obstacle) => obstacle !== null);
  }
}

/**
 * What all of them together mean for who wanted any: when the first may be free, and why none is. Who could not look at all of them does
 * not know that none is free: that is an error.
 */
export function judge(obstacles: readonly Obstacle[]): { reason: BusyReason; expiresInMs: number } {
  let [reason, expiresInMs]: [BusyReason, number] = ['held', Number.POSITIVE_INFINITY];
  const known = obstacles.map((obstacle) => {
    if (obstacle instanceof Error) throw obstacle;
    return obstacle;
  });
  // A held slot may expire sooner than the quarantine ends, but is not granted to another before that.
  const quarantined = known.filter((obstacle) => obstacle.reason === 'quarantine');
  for (const obstacle of quarantined.length > 0 ? quarantined : known) {
    if (reason === 'held') reason = obstacle.reason;
    expiresInMs = Math.min(expiresInMs, obstacle.expiresInMs);
  }
  return { reason, expiresInMs };
}

function obstacleOf(shown: ReadReply): Obstacle | null {
  if (shown.kind === 'failed') return shown.error;
  if (shown.kind === 'free') return null;
  return { reason: shown.kind, expiresInMs: shown.expiresInMs };
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
