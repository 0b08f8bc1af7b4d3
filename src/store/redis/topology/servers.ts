import type { Clock } from '../../../core/clock.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { Finding } from '../../port/examination.ts';
import { DEFAULT_MAX_TTLS, type MaxTtls } from '../../port/keyspaces.ts';
import { fenceOf } from '../keys.ts';
import type { Script } from '../scripts.ts';
import type { PrimaryServer } from './primary-server.ts';

/**
 * The servers behind a store: one, or the primaries of a Cluster. On a single server a verb for
 * many keys is one script. On a Cluster a script may only touch one slot, so it is one script per
 * key, sent together per server.
 */
export interface Servers {
  readonly name: string;
  /** Runs a verb. Every key of the work is in exactly one part of the answer. */
  run(work: Work, timeoutMs: number): Promise<Part[]>;
  /** Sends one plain command to the server that has the key. */
  send(
    operation: string,
    key: string,
    args: readonly string[],
    timeoutMs: number,
  ): Promise<unknown>;
  /** One step of a scan over the names of all texts that match; with `any`, of all keys. */
  scan(
    pattern: string,
    cursor: string | undefined,
    timeoutMs: number,
    any?: 'any',
  ): Promise<ScanPage>;
  /** On a Cluster: the server that has a key. Absent where there is one server. */
  shardOf?(key: string): string;
  /** The present servers. */
  readonly primaries: readonly PrimaryServer[];
  /** Called when servers have joined or left. */
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
  head?(primary: PrimaryServer): string[];
  /**
   * A key before all others. On a Cluster the script cannot share a slot with it, and goes without.
   */
  readonly before?: string;
  /** Declares the fence records too, where keys may be moving between servers. */
  readonly withFences?: boolean;
  /** How long the quarantine of a server lasts yet: while it does, the script is not run there. */
  admit?(primary: PrimaryServer): number;
  /** Runs first on each server. */
  prepare?(primary: PrimaryServer, timeoutMs: number): Promise<void>;
}

/** The answer for `count` keys of a work, in order, from `from` on. */
export type Part = { readonly from: number; readonly count: number } & (
  | { readonly kind: 'reply'; readonly reply: unknown; readonly primary: PrimaryServer }
  | { readonly kind: 'quarantined'; readonly leftMs: number }
  | { readonly kind: 'failed'; readonly error: Error }
);

/** The reply of a work with one key, or with one part. Throws the error that came instead. */
export function onlyReply([part]: readonly Part[]): unknown {
  if (part?.kind === 'failed') throw part.error;
  return part?.kind === 'reply' ? part.reply : null;
}

export interface ScanPage {
  readonly names: readonly string[];
  /** Absent at the end. */
  readonly cursor?: string;
}

/**
 * The time limit of an examination: as long as the slowest lease command, because a timeout ends
 * the connection.
 */
const RECHECK_TIMEOUT_MS = 5_000;
const MIN_RECHECK_EVERY_MS = 250;
const MAX_RECHECK_EVERY_MS = 10_000;
/** How many keys one step of a scan visits. */
const SCAN_COUNT = '500';

export class SingleServer implements Servers {
  readonly name: string;
  readonly primaries: readonly [PrimaryServer];
  onPrimaries = () => {};
  readonly #primary: PrimaryServer;
  readonly #clock: Clock;
  readonly #recheckEveryMs: number;
  readonly #closing = new AbortController();

  constructor({ clock }: BaseRuntime, primary: PrimaryServer, maxTtls: MaxTtls | null) {
    this.name = primary.name;
    this.primaries = [primary];
    this.#primary = primary;
    this.#clock = clock;
    this.#recheckEveryMs = recheckEveryMs(maxTtls);
  }

  async run(work: Work, timeoutMs: number): Promise<Part[]> {
    const primary = this.#primary;
    const count = work.keys.length;
    let leftMs = timeoutMs;
    // An era belongs to a connection: before the first one, sending waits for it, and the answer is
    // ERA.
    const quarantineMs = work.admit?.(primary) ?? 0;
    if (quarantineMs > 0) return [{ kind: 'quarantined', from: 0, count, leftMs: quarantineMs }];
    if (work.prepare !== undefined) {
      const startMs = this.#clock.monotonicMs();
      await work.prepare(primary, timeoutMs);
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

  scan(pattern: string, cursor = '0', timeoutMs: number, any?: 'any'): Promise<ScanPage> {
    return scanOne(this.#primary, { pattern, cursor, any }, timeoutMs);
  }

  examine(timeoutMs: number): Promise<readonly Finding[]> {
    return this.#primary.examine(timeoutMs);
  }

  async open(): Promise<void> {
    await this.#primary.connection.open();
    void this.#recheckUntilClosed();
  }

  close(): Promise<void> {
    this.#closing.abort();
    return this.#primary.close();
  }

  /** Settings, data and ids of a server can change under an open connection. */
  async #recheckUntilClosed(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(this.#recheckEveryMs, signal).catch(() => {});
      if (!signal.aborted && this.#primary.connection.isConnected)
        await this.#primary.recheck(RECHECK_TIMEOUT_MS).catch(() => {});
    }
  }
}

/**
 * Several times within the shortest bound: a finding has to stop grants before a lost lease
 * expires.
 */
function recheckEveryMs(maxTtls: MaxTtls | null): number {
  const shortestMs = Math.min(...Object.values(maxTtls ?? DEFAULT_MAX_TTLS));
  return Math.min(Math.max(shortestMs / 3, MIN_RECHECK_EVERY_MS), MAX_RECHECK_EVERY_MS);
}

function allKeys({ keys, before }: Work): readonly string[] {
  return before === undefined ? keys : [before, ...keys];
}

/** Loops instead of spreading: every request passes here. */
function allArgs({ perKey, head }: Work, primary: PrimaryServer): string[] {
  const args = head?.(primary) ?? [];
  for (let i = 0; i < perKey.length; i++) {
    const own = perKey[i] as readonly string[];
    for (let n = 0; n < own.length; n++) args.push(own[n] as string);
  }
  return args;
}

/** One step of a scan over the names on one server. */
export async function scanOne(
  { data }: PrimaryServer,
  { pattern, cursor, any }: { pattern: string; cursor: string; any?: 'any' | undefined },
  timeoutMs: number,
): Promise<ScanPage> {
  const from = isCursor(cursor) ? cursor : '0';
  const args = ['SCAN', from, 'MATCH', pattern, 'COUNT', SCAN_COUNT];
  if (any === undefined) args.push('TYPE', 'string');
  const [next, names] = (await data.send('list', args, timeoutMs)) as [string, string[]];
  return next === '0' ? { names } : { names, cursor: next };
}

/** Users pass cursors. A text that is none begins at the beginning. */
function isCursor(text: string): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
}

/** The keys that a script for one key declares on a Cluster. */
export function declared({ before, withFences }: Work, key: string): string[] {
  const keys = before === undefined ? [key] : [key, key];
  return withFences ? [...keys, fenceOf(key)] : keys;
}
