import type { Clock } from '../../../core/clock.ts';
import type { Finding } from '../../port/examination.ts';
import { DEFAULT_MAX_TTLS, type MaxTtls } from '../../port/keyspaces.ts';
import { fenceOf } from '../keys.ts';
import type { Script } from '../scripts.ts';
import type { Primary, PrimaryContext } from './primary.ts';

/**
 * The servers behind a store: one, or the primaries of a Cluster. A verb for many keys is one script on a single server;
 * on a Cluster, where a script may only touch one slot, it is one script per key, sent together per server.
 */
export interface Servers {
  readonly name: string;
  /** Runs a verb. Every key of the work is in exactly one part of the answer. */
  run(work: Work, timeoutMs: number): Promise<Part[]>;
  /** Sends one plain command to whoever has the key. */
  send(
    operation: string,
    key: string,
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown>;
  /** One step of a walk over the names of all keys that match. */
  scan(pattern: string, cursor: string | undefined, timeoutMs: number): Promise<ScanPage>;
  /** Keys of different lanes lie on different servers; absent where there is one. */
  lane?(key: string): string;
  /** The servers there are now. */
  readonly primaries: readonly Primary[];
  /** Called when there are others. */
  onPrimaries: () => void;
  examine(timeoutMs: number): Promise<readonly Finding[]>;
  open(): Promise<void>;
  close(): Promise<void>;
}

export interface Work {
  readonly script: Script;
  readonly keys: readonly string[];
  /** The arguments of each key. */
  readonly perKey: readonly (readonly string[])[];
  /** The arguments before them, which may depend on the server. */
  head?(primary: Primary): string[];
  /** A key before all others, that the script can not share a slot with on a Cluster: there it goes without. */
  readonly before?: string;
  /** Declares the fence records too where keys may be on the move between servers. */
  readonly withFences?: boolean;
  /** Done first on each server. Says for how long yet it is in quarantine; unless that is 0, it gets no work. */
  prepare?(primary: Primary, timeoutMs: number): Promise<number>;
}

/** The answer for some keys of a work, in order: those from `from` on. */
export type Part = { readonly from: number; readonly count: number } & (
  | { readonly kind: 'reply'; readonly reply: unknown; readonly primary: Primary }
  | { readonly kind: 'quarantined'; readonly leftMs: number }
  | { readonly kind: 'failed'; readonly error: Error }
);

export interface ScanPage {
  readonly names: readonly string[];
  /** Absent at the end. */
  readonly cursor?: string;
}

/** How long a look at a server may take: as long as the slowest lease command, because a timeout costs the connection. */
const LOOK_MS = 5_000;
const SHORTEST_LOOK_EVERY_MS = 250;
const LONGEST_LOOK_EVERY_MS = 10_000;
/** How many keys one step of a walk looks at. */
const SCAN_COUNT = '500';

export class SingleServer implements Servers {
  readonly name: string;
  readonly primaries: readonly [Primary];
  onPrimaries = () => {};
  readonly #primary: Primary;
  readonly #clock: Clock;
  readonly #lookEveryMs: number;
  readonly #closing = new AbortController();

  constructor(primary: Primary, { clock, maxTtls }: Pick<PrimaryContext, 'clock' | 'maxTtls'>) {
    this.name = primary.name;
    this.primaries = [primary];
    this.#primary = primary;
    this.#clock = clock;
    this.#lookEveryMs = lookEveryMs(maxTtls);
  }

  async run(work: Work, timeoutMs: number): Promise<Part[]> {
    const primary = this.#primary;
    const count = work.keys.length;
    let leftMs = timeoutMs;
    if (work.prepare !== undefined) {
      const startMs = this.#clock.monotonicMs();
      // An examined era belongs to a connection: with none yet, sending waits for it, and the answer is ERA.
      const quarantineMs = await work.prepare(primary, timeoutMs);
      if (quarantineMs > 0) return [{ kind: 'quarantined', from: 0, count, leftMs: quarantineMs }];
      leftMs -= this.#clock.monotonicMs() - startMs;
    }
    const { script } = work;
    const reply = await primary
      .connectionFor(script.isAboutLeases)
      .script(script, allKeys(work), allArgs(work, primary), leftMs);
    return [{ kind: 'reply', from: 0, count, reply, primary }];
  }

  send(operation: string, _key: string, args: readonly string[], timeoutMs: number) {
    return this.#primary.data.send(operation, args, timeoutMs);
  }

  scan(pattern: string, cursor = '0', timeoutMs: number): Promise<ScanPage> {
    return scanOne(this.#primary, pattern, cursor, timeoutMs);
  }

  examine(timeoutMs: number): Promise<readonly Finding[]> {
    return this.#primary.examine(timeoutMs);
  }

  async open(): Promise<void> {
    await this.#primary.connection.open();
    void this.#lookForEver();
  }

  close(): Promise<void> {
    this.#closing.abort();
    return this.#primary.close();
  }

  /** Settings, data and ids of a server can change under a connection that stands. */
  async #lookForEver(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(this.#lookEveryMs, signal).catch(() => {});
      if (!signal.aborted && this.#primary.connection.isConnected)
        await this.#primary.recheck(LOOK_MS).catch(() => {});
    }
  }
}

/** Several times within the shortest lease: what a look finds has to stop grants before a lease of it expires. */
function lookEveryMs(maxTtls: MaxTtls | null): number {
  const shortestMs = Math.min(...Object.values(maxTtls ?? DEFAULT_MAX_TTLS));
  return Math.min(Math.max(shortestMs / 3, SHORTEST_LOOK_EVERY_MS), LONGEST_LOOK_EVERY_MS);
}

function allKeys({ keys, before }: Work): readonly string[] {
  return before === undefined ? keys : [before, ...keys];
}

/** Loops instead of spreading: this is on the way of every request. */
function allArgs({ perKey, head }: Work, primary: Primary): string[] {
  const args = head?.(primary) ?? [];
  for (let i = 0; i < perKey.length; i++) {
    const own = perKey[i] as readonly string[];
    for (let n = 0; n < own.length; n++) args.push(own[n] as string);
  }
  return args;
}

/** One step of a walk over the names on one server. */
export async function scanOne(
  { data }: Primary,
  pattern: string,
  cursor: string,
  timeoutMs: number,
): Promise<ScanPage> {
  const from = isCursor(cursor) ? cursor : '0';
  const args = ['SCAN', from, 'MATCH', pattern, 'COUNT', SCAN_COUNT, 'TYPE', 'string'];
  const [next, names] = (await data.send('list', args, timeoutMs)) as [string, string[]];
  return next === '0' ? { names } : { names, cursor: next };
}

/** Cursors come back from strangers, too. What is none begins at the beginning, as everywhere. */
function isCursor(text: string): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
}

/** The keys a script for one key declares on a Cluster. */
export function declared({ before, withFences }: Work, key: string): string[] {
  const keys = before === undefined ? [key] : [key, key];
  return withFences ? [...keys, fenceOf(key)] : keys;
}
