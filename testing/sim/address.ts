import type { Machine } from './machine.ts';

/**
 * An address that leads to one of two servers, as a virtual IP, a DNS name or a service does. The
 * server that was left is never demoted: it keeps its data and its identity. Once it is `leave`d,
 * clients cannot reach it until the address leads to it again.
 */
export class Address {
  readonly #nowMs: () => number;
  readonly #used: Set<Machine>;
  #current: Machine;
  #other: Machine;
  #sinceMs = 0;

  constructor(nowMs: () => number, [first, second]: readonly [Machine, Machine]) {
    this.#nowMs = nowMs;
    this.#current = first;
    this.#other = second;
    this.#used = new Set([first]);
    second.isDown = true;
  }

  get machine(): Machine {
    return this.#current;
  }

  get other(): Machine {
    return this.#other;
  }

  /** Since when it leads to the present server. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Whether it has ever led to the other server. */
  get isOtherUsed(): boolean {
    return this.#used.has(this.#other);
  }

  /** Every connection ends, and new ones lead to the other server. */
  move(): void {
    this.moveName();
    this.leave();
  }

  /**
   * A name resolves to the other server from now on. The one before still answers those who are
   * connected to it.
   */
  moveName(): void {
    const left = this.#current;
    this.#current = this.#other;
    this.#other = left;
    this.#sinceMs = this.#nowMs();
    this.#used.add(this.#current);
    this.#current.isDown = false;
  }

  /** The server that the address does not lead to goes down. */
  leave(): void {
    this.#other.goDown();
  }
}
