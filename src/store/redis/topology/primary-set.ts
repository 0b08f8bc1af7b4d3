import type { Clock } from '../../../core/clock.ts';
import type { RedisAddress } from '../client/address.ts';
import type { ServedSlots } from '../witness-state.ts';
import type { PrimaryServer } from './primary-server.ts';
import { readSlotMap, type SlotMap } from './slot-map.ts';
import { slotOf } from './slots.ts';

/** The time limit for reading the map, or for examining a server. */
export const REFRESH_MS = 2_000;
/**
 * The least time between two reads of the map, unless a server says that it has changed: each costs
 * a connection.
 */
const MIN_REFRESH_PAUSE_MS = 100;
/** How long a server without slots is kept after a redirection to it. */
const REDIRECTED_KEPT_MS = 30_000;
/** Between two reads of the map while a server is unreachable. */
const UNREACHABLE_PAUSE_MS = 250;

/** The Cluster that the primaries belong to. */
export interface PrimarySetOwner {
  /** Ends every read of the map. */
  readonly signal: AbortSignal;
  createPrimary(address: string, onDisconnected: () => void): PrimaryServer;
  /** Servers have joined or left. */
  onChange(): void;
}

/** The primaries of a Cluster, and the map of its slots as it was last read. */
export class PrimarySet {
  readonly #clock: Clock;
  readonly #address: RedisAddress;
  readonly #owner: PrimarySetOwner;
  #map: SlotMap = [];
  /** The addresses on the map. */
  #serving: ReadonlySet<string | undefined> = new Set();
  readonly #primaries = new Map<string, PrimaryServer>();
  /** When each server was last the target of a redirection. It may be on no map yet. */
  readonly #redirectedAtMs = new Map<string, number>();
  #refreshing: Promise<void> | null = null;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #connectsNew = false;

  constructor(clock: Clock, address: RedisAddress, owner: PrimarySetOwner) {
    this.#clock = clock;
    this.#address = address;
    this.#owner = owner;
  }

  get primaries(): readonly PrimaryServer[] {
    return [...this.#primaries.values()];
  }

  at(address: string): PrimaryServer | undefined {
    return this.#primaries.get(address);
  }

  has(primary: PrimaryServer): boolean {
    return this.#primaries.get(primary.address) === primary;
  }

  /** The address of the server that has a key; '' if none has. */
  ownerOf(key: string): string {
    return this.#map[slotOf(key)] ?? '';
  }

  /** The slots of a server, always by the current map. */
  slotsOf(address: string): ServedSlots {
    const isEmpty = () => !this.#serving.has(address);
    return {
      get isEmpty() {
        return isEmpty();
      },
      has: (key) => this.ownerOf(key) === address,
    };
  }

  /**
   * From now on new servers are connected to at once. So they are examined, and their quarantine
   * begins.
   */
  connectNew(): void {
    this.#connectsNew = true;
  }

  /** Whether the map may be read again. */
  get isDue(): boolean {
    return this.#clock.monotonicMs() - this.#readAtMs >= MIN_REFRESH_PAUSE_MS;
  }

  /** A server has said that the map has changed. */
  invalidate(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * A server has redirected us to this one. A primary that is about to get its first slots is on no
   * map and has keys all the same. One that has just got its first may be on a map not read yet.
   */
  addRedirected(address: string): void {
    if (this.#serving.has(address)) return;
    this.#redirectedAtMs.set(address, this.#clock.monotonicMs());
    if (this.#add(new Set([address]))) this.#owner.onChange();
  }

  #isRedirected(address: string): boolean {
    const atMs = this.#redirectedAtMs.get(address);
    return atMs !== undefined && this.#clock.monotonicMs() - atMs < REDIRECTED_KEPT_MS;
  }

  /** Reads the map. Calls during a read share it. */
  refresh(timeoutMs = REFRESH_MS): Promise<void> {
    this.#refreshing ??= this.#readMap(timeoutMs).finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Resolves when no read of the map is under way. */
  async idle(): Promise<void> {
    await this.#refreshing?.catch(() => {});
  }

  async #readMap(timeoutMs: number): Promise<void> {
    const { signal } = this.#owner;
    const known = this.primaries
      .filter(({ connection }) => connection.isConnected)
      .map(({ address }) => address);
    // The configured addresses next, and then servers that are unreachable: one of them may be
    // back.
    const others = this.primaries.map(({ address }) => address);
    const servers = [...known, ...this.#address.endpoints, ...others];
    this.#readAtMs = this.#clock.monotonicMs();
    const limit = { timeoutMs, signal };
    this.#map = await readSlotMap(this.#clock, this.#address, servers, limit);
    this.#serving = new Set(this.#map);
    for (const address of this.#redirectedAtMs.keys())
      if (this.#serving.has(address)) this.#redirectedAtMs.delete(address);
    const isChanged = [this.#add(this.#serving), this.#drop(this.#serving)].includes(true);
    if (isChanged) this.#owner.onChange();
  }

  #add(addresses: ReadonlySet<string | undefined>): boolean {
    let isChanged = false;
    for (const address of addresses) {
      if (address === undefined || this.#primaries.has(address)) continue;
      const primary: PrimaryServer = this.#owner.createPrimary(
        address,
        () => void this.#findSuccessor(primary),
      );
      this.#primaries.set(address, primary);
      if (this.#connectsNew) primary.connection.connect();
      isChanged = true;
    }
    return isChanged;
  }

  #drop(addresses: ReadonlySet<string | undefined>): boolean {
    let isChanged = false;
    for (const [address, primary] of this.#primaries) {
      if (addresses.has(address) || this.#isRedirected(address)) continue;
      this.#primaries.delete(address);
      this.#redirectedAtMs.delete(address);
      void primary.close();
      isChanged = true;
    }
    return isChanged;
  }

  /**
   * A server is unreachable: reads the map until the server is back or another one has its slots.
   */
  async #findSuccessor(primary: PrimaryServer): Promise<void> {
    const { signal } = this.#owner;
    while (!signal.aborted && this.has(primary) && !primary.connection.isConnected) {
      await this.refresh().catch(() => {});
      await this.#clock.sleep(UNREACHABLE_PAUSE_MS, signal).catch(() => {});
    }
  }
}
