import type { Clock } from '../../../core/clock.ts';
import type { RedisAddress } from '../client/address.ts';
import type { ServedSlots } from '../witness.ts';
import type { Primary } from './primary.ts';
import { askForSlots, readAddress, type SlotMap } from './slot-map.ts';
import { slotOf } from './slots.ts';

/** How long a look at the map, or at a server, may take. */
export const LOOK_MS = 2_000;
/** Between two looks at the map, unless a server says that it has changed: each costs a connection. */
const LOOK_EVERY_MS = 100;
/** How long a server without slots is kept on the roster after another has sent us there. */
const VISIT_KEPT_MS = 30_000;
/** Between two looks at the map while a server is gone. */
const LOOK_AGAIN_MS = 250;

export interface RosterParts {
  readonly address: RedisAddress;
  readonly clock: Clock;
  /** Ends every look. */
  readonly signal: AbortSignal;
  make(address: string, onDisconnected: () => void): Primary;
  /** Other servers have come or gone. */
  onChange(): void;
}

/** Who serves which slot of a Cluster: the map as it was last seen, and the servers on it. */
export class ClusterNodes {
  readonly #parts: RosterParts;
  #map: SlotMap = [];
  /** Everybody on it. */
  #serving: ReadonlySet<string | undefined> = new Set();
  readonly #primaries = new Map<string, Primary>();
  /** Servers to which others have sent us, and when they last did: they may be on no map yet. */
  readonly #visitedAtMs = new Map<string, number>();
  #refreshing: Promise<void> | null = null;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #isWelcoming = false;

  constructor(parts: RosterParts) {
    this.#parts = parts;
  }

  get primaries(): readonly Primary[] {
    return [...this.#primaries.values()];
  }

  at(address: string): Primary | undefined {
    return this.#primaries.get(address);
  }

  has(primary: Primary): boolean {
    return this.#primaries.get(primary.address) === primary;
  }

  /** The address of the server that has a key; '' if nobody has. */
  ownerOf(key: string): string {
    return this.#map[slotOf(key)] ?? '';
  }

  /** What a server serves, as the map says whenever it is asked. */
  slotsOf(address: string): ServedSlots {
    const isEmpty = () => !this.#serving.has(address);
    return {
      get isEmpty() {
        return isEmpty();
      },
      has: (key) => this.ownerOf(key) === address,
    };
  }

  /** From now on servers that are new here are connected to, and so examined, at once: their quarantine begins with that. */
  welcome(): void {
    this.#isWelcoming = true;
  }

  /** Whether it is time for another look. */
  get isDue(): boolean {
    return this.#parts.clock.monotonicMs() - this.#lookedAtMs >= LOOK_EVERY_MS;
  }

  /** A server has said that the map has changed. */
  outdated(): void {
    this.#lookedAtMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * A server has sent us to this one. A primary that is to get its first slots is on no map, and has keys all the same;
   * one that has just got its first may be on a map that nobody has shown us yet.
   */
  visit(address: string): void {
    if (this.#serving.has(address)) return;
    this.#visitedAtMs.set(address, this.#parts.clock.monotonicMs());
    if (this.#add(new Set([address]))) this.#parts.onChange();
  }

  #isVisited(address: string): boolean {
    const atMs = this.#visitedAtMs.get(address);
    return atMs !== undefined && this.#parts.clock.monotonicMs() - atMs < VISIT_KEPT_MS;
  }

  /** Reads the map anew; one look serves all who want one at the time. */
  refresh(timeoutMs = LOOK_MS): Promise<void> {
    this.#refreshing ??= this.#readMap(timeoutMs).finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Resolves when no look is under way. */
  async settled(): Promise<void> {
    await this.#refreshing?.catch(() => {});
  }

  async #readMap(timeoutMs: number): Promise<void> {
    const { address: given, clock, signal } = this.#parts;
    const known = this.primaries
      .filter(({ connection }) => connection.isConnected)
      .map(({ address }) => readAddress(address));
    // Whom the address names, and then whom nobody reaches just now: one of them may be back.
    const others = this.primaries.map(({ address }) => readAddress(address));
    const endpoints = [...known, ...given.endpoints, ...others];
    this.#lookedAtMs = clock.monotonicMs();
    this.#map = await askForSlots(endpoints, { ...given, clock }, timeoutMs, signal);
    this.#serving = new Set(this.#map);
    for (const address of this.#visitedAtMs.keys())
      if (this.#serving.has(address)) this.#visitedAtMs.delete(address);
    const isChanged = [this.#add(this.#serving), this.#drop(this.#serving)].includes(true);
    if (isChanged) this.#parts.onChange();
  }

  #add(addresses: ReadonlySet<string | undefined>): boolean {
    let isChanged = false;
    for (const address of addresses) {
      if (address === undefined || this.#primaries.has(address)) continue;
      const primary: Primary = this.#parts.make(address, () => void this.#findSuccessor(primary));
      this.#primaries.set(address, primary);
      if (this.#isWelcoming) primary.connection.connect();
      isChanged = true;
    }
    return isChanged;
  }

  #drop(addresses: ReadonlySet<string | undefined>): boolean {
    let isChanged = false;
    for (const [address, primary] of this.#primaries) {
      if (addresses.has(address) || this.#isVisited(address)) continue;
      this.#primaries.delete(address);
      this.#visitedAtMs.delete(address);
      void primary.close();
      isChanged = true;
    }
    return isChanged;
  }

  /** A server is gone: looks who has its slots, until it is back or somebody else has them. */
  async #findSuccessor(primary: Primary): Promise<void> {
    const { clock, signal } = this.#parts;
    while (!signal.aborted && this.has(primary) && !primary.connection.isConnected) {
      await this.refresh().catch(() => {});
      await clock.sleep(LOOK_AGAIN_MS, signal).catch(() => {});
    }
  }
}
