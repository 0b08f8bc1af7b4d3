import type { FleetSighting } from './fleet-picture.ts';
import type { Difference, FleetState } from './fleet-state.ts';

/**
 * One subscriber to the fleet: the changes that it has not read yet. A slow subscriber gets one
 * merged change, so never more waits for it than the fleet itself.
 */
export class FleetSubscription {
  #hasPicture = false;
  #isShownStalled = false;
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

  /** Resolves when `next` may have something. Call it in the same turn in which it had nothing. */
  woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** The next sighting for the subscriber; null where there is nothing to show yet. */
  next(
    state: FleetState,
    isReady: boolean,
    stalled: { readonly error: unknown } | null,
  ): FleetSighting | null {
    if (this.#isOver) return null;
    if (stalled !== null) {
      if (this.#isShownStalled) return null;
      this.#isShownStalled = true;
      return { kind: 'stalled', error: stalled.error };
    }
    if (this.#isShownStalled) {
      this.#isShownStalled = false;
      return { kind: 'resumed' };
    }
    if (!isReady || (this.#hasPicture && !this.#isDue)) return null;
    const sighting: FleetSighting = this.#hasPicture
      ? { kind: 'change', change: state.change(this.#targets, this.#removed, this.#hasMembers) }
      : { kind: 'picture', picture: state.picture() };
    this.#hasPicture = true;
    this.#isDue = false;
    this.#hasMembers = false;
    this.#targets.clear();
    this.#removed.clear();
    return sighting;
  }
}
