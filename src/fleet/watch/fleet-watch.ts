/**
 * Everybody in this process who watches the fleet, behind one look at it, which runs from the first who watches to the last. Who takes its
 * time is not sent what it has missed one by one, but once, as it is by then: so what waits for it is never more than the fleet itself.
 */
import { ClosedError } from '../../core/errors.ts';
import type { FleetSighting } from './fleet-picture.ts';
import { FleetRounds, type RoundsParts } from './fleet-rounds.ts';
import type { Difference } from './fleet-state.ts';

/** Also if nothing has changed, those who watch are told so within two seconds. */
const TELL_EVERY_MS = 1_500;

/** One look at the fleet, from the first who watches to the last. */
interface Look {
  readonly rounds: FleetRounds;
  readonly watchers: Set<Watcher>;
  /** There is something to show. */
  isSettled: boolean;
  stalled: { readonly error: unknown } | null;
  /** When somebody was last told something. */
  toldMs: number;
}

export class FleetWatch {
  readonly #parts: RoundsParts;
  #look: Look | null = null;
  #isClosed = false;

  constructor(parts: RoundsParts) {
    this.#parts = parts;
  }

  /** What is known of the fleet because somebody watches it. */
  get lookout(): FleetRounds['lookout'] | null {
    return this.#look?.isSettled === true && this.#look.stalled === null
      ? this.#look.rounds.lookout
      : null;
  }

  /** The fleet as it is, then what changes, until the signal fires or this is closed. */
  async *watch({
    signal,
  }: {
    signal: AbortSignal;
  }): AsyncGenerator<FleetSighting, void, undefined> {
    if (this.#isClosed) throw new ClosedError({ operation: 'watch' });
    if (signal.aborted) return;
    const look = this.#look ?? this.#begin();
    const watcher = new Watcher();
    look.watchers.add(watcher);
    const onAbort = () => watcher.end();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        const sighting = watcher.next(look);
        if (sighting !== null) yield sighting;
        else if (watcher.isOver) return;
        else await watcher.woken();
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      look.watchers.delete(watcher);
      if (look.watchers.size === 0) this.#end(look);
    }
  }

  /** Ends all watching. */
  close(): void {
    this.#isClosed = true;
    for (const watcher of this.#look?.watchers ?? []) watcher.end();
  }

  #begin(): Look {
    const watchers = new Set<Watcher>();
    const rounds = new FleetRounds(this.#parts, {
      onSettled: (difference) => this.#settled(look, difference),
      onStalled: (error) => {
        look.stalled = { error };
        for (const watcher of watchers) watcher.wake();
      },
    });
    const look: Look = { rounds, watchers, isSettled: false, stalled: null, toldMs: 0 };
    this.#look = look;
    rounds.start();
    return look;
  }

  /** Nobody waits for a request that is under way. */
  #end(look: Look): void {
    if (this.#look === look) this.#look = null;
    void look.rounds.stop();
  }

  #settled(look: Look, difference: Difference): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const { targets, removed, members } = difference;
    const isQuiet = targets.length === 0 && removed.length === 0 && !members;
    const isNews = !isQuiet || !look.isSettled || look.stalled !== null;
    look.isSettled = true;
    look.stalled = null;
    if (!isNews && nowMs - look.toldMs < TELL_EVERY_MS) return;
    look.toldMs = nowMs;
    for (const watcher of look.watchers) watcher.add(difference);
  }
}

/** One who watches: what it was told, and what waits for it. */
class Watcher {
  #hasPicture = false;
  #isToldStalled = false;
  #isDue = false;
  #hasMembers = false;
  readonly #targets = new Set<string>();
  readonly #removed = new Set<string>();
  #isOver = false;
  #wake: () => void = () => {};

  get isOver(): boolean {
    return this.#isOver;
  }

  add({ targets, removed, members }: Difference): void {
    this.#isDue = true;
    this.#hasMembers ||= members;
    for (const id of removed) {
      this.#targets.delete(id);
      this.#removed.add(id);
    }
    for (const { id } of targets) {
      this.#removed.delete(id);
      this.#targets.add(id);
    }
    this.wake();
  }

  end(): void {
    this.#isOver = true;
    this.wake();
  }

  wake(): void {
    this.#wake();
  }

  /** Resolves when there may be something for it; call it in the same turn in which there was not. */
  woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** What comes next for it; null where there is nothing yet. */
  next({ rounds, isSettled, stalled }: Look): FleetSighting | null {
    if (this.#isOver) return null;
    if (stalled !== null) {
      if (this.#isToldStalled) return null;
      this.#isToldStalled = true;
      return { kind: 'stalled', error: stalled.error };
    }
    if (this.#isToldStalled) {
      this.#isToldStalled = false;
      return { kind: 'resumed' };
    }
    if (!isSettled || (this.#hasPicture && !this.#isDue)) return null;
    const { lookout } = rounds;
    const sighting: FleetSighting = this.#hasPicture
      ? { kind: 'change', change: lookout.change(this.#targets, this.#removed, this.#hasMembers) }
      : { kind: 'picture', picture: lookout.picture() };
    this.#hasPicture = true;
    this.#isDue = false;
    this.#hasMembers = false;
    this.#targets.clear();
    this.#removed.clear();
    return sighting;
  }
}
