/**
 * The judge of a mixed world. At no moment may two leases on one key of the store both be believed
 * in: `isHeld()` or `assertHeld()` passes. It looks at names in the store, not at classes or
 * prefixes, and at true time, not at any clock. It also holds fences to grow from grant to grant.
 *
 * Some combinations are not promised. Each has a name, applies to one pair of leases, and is
 * counted:
 *
 * - **granted with quarantine off**: the later lease was granted to a client with `quarantine:
 *   'off'`, after a loss that the earlier one survived, while the quarantine of that loss lasted;
 * - **unnoticed emptying**: the later lease was granted to a newcomer, after the store was emptied
 *   without a restart and before any client that remembers the store had examined it;
 * - **old primary**: the address led back to a server with old data, and the later lease was
 *   granted to a client that had not been at the server in between, before any client that had been
 *   there examined the old one;
 * - **store clock set forward**: the store's clock was set forward during the earlier lease, which
 *   expired early there;
 * - **revoked by force**: an operator freed the key under this very holder;
 * - **two servers**: the name of the store led to another server, and the one before still
 *   answered: one lease was granted by one of them, and the other's holder was served by the other;
 * - **clock beyond the guard**: the holder's clock is slower than the store's by more than its
 *   guard;
 * - **store clock set back** (fences only): the store lost data after its clock was set back.
 */
import type { Counters } from './counters.ts';
import type { SimHost, SimProcess } from './host.ts';
import type { ModelAudit } from './model-audit.ts';

/** One lease that a process was granted, and may believe in. */
export interface Belief {
  readonly storeKey: string;
  readonly process: SimProcess;
  readonly holder: string;
  readonly fence: number;
  readonly ttlMs: number;
  /** Undefined for the default one. */
  readonly guardMs?: number;
  /** What its slot is one of: so many at most are held at a time. */
  readonly pool?: { readonly name: string; readonly slots: number };
  /** Its client has `quarantine: 'off'`. */
  readonly isOff: boolean;
  isBelieved(): boolean;
}

export type NonPromise =
  | 'granted with quarantine off'
  | 'unnoticed emptying'
  | 'old primary'
  | 'store clock set forward'
  | 'revoked by force'
  | 'two servers'
  | 'clock beyond the guard'
  | 'store clock set back';

export const NON_PROMISES: readonly NonPromise[] = [
  'granted with quarantine off',
  'unnoticed emptying',
  'old primary',
  'store clock set forward',
  'revoked by force',
  'two servers',
  'clock beyond the guard',
  'store clock set back',
];

/** How the store may have forgotten leases. */
export interface Loss {
  readonly atMs: number;
  /**
   * `emptied`: under running clients, without a restart. `returned`: the address leads to an older
   * server again.
   */
  readonly how: 'noticeable' | 'emptied' | 'returned';
  /** Since when the server that was left had been in use. */
  readonly sinceMs: number;
}

interface Granted extends Belief {
  readonly grantedMs: number;
  /** The server that has granted it. */
  readonly server: unknown;
}

export interface BelieversParts {
  readonly nowMs: () => number;
  readonly counters: Counters;
  readonly boundMs: number;
  /** The machine of the store: its clock. */
  readonly storeHost?: Pick<SimHost, 'rate'>;
  /** Told of losses, and of times in which nothing is promised. */
  readonly model?: Pick<ModelAudit, 'lost' | 'clockSet' | 'excuse'>;
  report(invariant: 'exclusion' | 'grants' | 'slots', storeKey: string, text: string): void;
}

/** What the quarantine adds to the bound, and how exactly a loss and a grant are placed in time. */
const MARGIN_MS = 1_000;
const SLACK_MS = 500;
/** How exactly a store and a timer see the end of a lease. */
const SLACK_OF_BEYOND_MS = 5;

export class Believers {
  readonly #parts: BelieversParts;
  readonly #beliefs = new Map<string, Set<Granted>>();
  readonly #contested = new Set<string>();
  readonly #newest = new Map<string, Granted>();
  /** When the server made each grant, by process and fence. */
  readonly #grants = new Map<string, Pick<Granted, 'grantedMs' | 'server'>>();
  /** When each server last served a process. */
  readonly #servedMs = new Map<SimProcess, Map<unknown, number>>();
  /** Since when two servers answer, or did; until when nothing is promised of that. */
  readonly #splits: { readonly fromMs: number; untilMs: number }[] = [];
  /** Of which server, too: another one says nothing about the losses of this one. */
  readonly #examined = new Map<SimProcess, { readonly atMs: number; readonly server: unknown }[]>();
  readonly #losses: Loss[] = [];
  readonly #steps: { readonly atMs: number; readonly ms: number }[] = [];
  readonly #forced: Pick<Belief, 'storeKey' | 'holder' | 'fence'>[] = [];
  readonly #counted = new WeakMap<Granted, Set<Granted>>();

  constructor(parts: BelieversParts) {
    this.#parts = parts;
  }

  /** The store has carried out an acquire of this process, and granted these fences. */
  granted(process: SimProcess, fences: readonly number[], server: unknown = null): void {
    const granted = { grantedMs: this.#parts.nowMs(), server };
    for (const fence of fences) this.#grants.set(`${process.name} ${fence}`, granted);
  }

  /** A server has carried out something for this process. */
  served(process: SimProcess, server: unknown): void {
    const times = this.#servedMs.get(process) ?? new Map<unknown, number>();
    this.#servedMs.set(process, times.set(server, this.#parts.nowMs()));
  }

  /** From now on, for so long at most, two servers answer; what this gives ends that. */
  split(forMs: number): () => void {
    const { nowMs, boundMs, model } = this.#parts;
    const split = { fromMs: nowMs(), untilMs: Number.POSITIVE_INFINITY };
    this.#splits.push(split);
    model?.excuse(forMs + 2 * boundMs);
    return () => {
      split.untilMs = nowMs() + boundMs + MARGIN_MS;
    };
  }

  /** A server has compared itself with its marker, for this process. */
  examined(process: SimProcess, server: unknown = null): void {
    const all = this.#examined.get(process) ?? [];
    this.#examined.set(process, all);
    all.push({ atMs: this.#parts.nowMs(), server });
  }

  lost(how: Loss['how'], sinceMs = 0): void {
    this.#losses.push({ atMs: this.#parts.nowMs(), how, sinceMs });
    this.#parts.model?.lost();
  }

  clockSet(ms: number): void {
    this.#steps.push({ atMs: this.#parts.nowMs(), ms });
    this.#parts.model?.clockSet(ms);
    // Fences may come again for good.
    this.#parts.model?.excuse(ms > 0 ? this.#parts.boundMs : Number.POSITIVE_INFINITY);
  }

  /** An operator is about to free this key under this holder, and has read this fence. */
  revokesByForce(meant: Pick<Belief, 'storeKey' | 'holder' | 'fence'>): void {
    this.#forced.push(meant);
    this.#parts.model?.excuse(2 * this.#parts.boundMs);
  }

  /** Whether a grant to this process now is one that a loss forbids, and nothing can prevent. */
  isEarly(process: SimProcess, isOff: boolean, server: unknown = null): boolean {
    const { boundMs, nowMs } = this.#parts;
    const granted = { process, grantedMs: nowMs(), server };
    return this.#losses.some((loss) => {
      if (nowMs() > loss.atMs + boundMs + MARGIN_MS) return false;
      if (isOff) return true;
      if (loss.how === 'emptied') return this.#isUnnoticed(loss, granted, 0);
      return loss.how === 'returned' && this.#isUnnoticed(loss, granted, loss.sinceMs);
    });
  }

  /** Begins to watch a lease; call what this gives when its work is over. */
  watch(belief: Belief): () => void {
    const { storeKey, process, fence } = belief;
    const name = `${process.name} ${fence}`;
    const made = this.#grants.get(name) ?? { grantedMs: this.#parts.nowMs(), server: null };
    this.#grants.delete(name);
    const granted: Granted = { ...belief, ...made };
    const beliefs = this.#beliefs.get(storeKey) ?? new Set();
    this.#beliefs.set(storeKey, beliefs.add(granted));
    if (beliefs.size > 1) this.#contested.add(storeKey);
    this.#compareFences(granted);
    this.#countSlots(granted);
    return () => {
      beliefs.delete(granted);
      if (beliefs.size < 2) this.#contested.delete(storeKey);
    };
  }

  /** Who believes in this key now. */
  of(storeKey: string): SimProcess[] {
    return [...(this.#beliefs.get(storeKey) ?? [])]
      .filter(isBelieved)
      .map(({ process }) => process);
  }

  /** The lease that the clients believe in whose TTL is the longest. */
  longest(): Belief | undefined {
    const all = [...this.#beliefs.values()].flatMap((beliefs) => [...beliefs]).filter(isBelieved);
    return all.sort((a, b) => b.ttlMs - a.ttlMs)[0];
  }

  forget(process: SimProcess): void {
    for (const [storeKey, beliefs] of this.#beliefs) {
      for (const one of beliefs) if (one.process === process) beliefs.delete(one);
      if (beliefs.size < 2) this.#contested.delete(storeKey);
    }
  }

  /** After everything that happens: nothing else can make a second lease believed in. */
  settled(): void {
    for (const storeKey of this.#contested) {
      const believed = [...(this.#beliefs.get(storeKey) ?? [])].filter(isBelieved);
      believed.sort((a, b) => a.grantedMs - b.grantedMs);
      for (const [i, earlier] of believed.entries())
        for (const later of believed.slice(i + 1)) this.#judge(earlier, later);
    }
  }

  #judge(earlier: Granted, later: Granted): void {
    const excuse = this.#nonPromise(earlier, later);
    if (excuse === null) {
      const [a, b] = [earlier, later].map(({ process, fence }) => `${process.name} (${fence})`);
      const { storeKey } = later;
      this.#parts.report('exclusion', storeKey, `${a} and ${b} both believe to hold ${storeKey}`);
      return;
    }
    const counted = this.#counted.get(later) ?? new Set();
    this.#counted.set(later, counted);
    if (!counted.has(earlier)) this.#parts.counters.add(`not promised: ${excuse}`);
    counted.add(earlier);
  }

  #nonPromise(earlier: Granted, later: Granted): NonPromise | null {
    const { boundMs, nowMs } = this.#parts;
    const between = this.#losses.filter(
      ({ atMs }) => earlier.grantedMs < atMs && atMs < later.grantedMs,
    );
    const untilMs = boundMs + MARGIN_MS + SLACK_MS;
    if (later.isOff && between.some(({ atMs }) => later.grantedMs <= atMs + untilMs))
      return 'granted with quarantine off';
    for (const loss of between) {
      if (loss.how === 'emptied' && this.#isUnnoticed(loss, later, 0)) return 'unnoticed emptying';
      if (loss.how === 'returned' && this.#isUnnoticed(loss, later, loss.sinceMs))
        return 'old primary';
    }
    const isStepped = this.#steps.some(
      ({ atMs, ms }) =>
        ms > 0 && earlier.grantedMs < atMs && nowMs() <= atMs + earlier.ttlMs + MARGIN_MS,
    );
    if (isStepped) return 'store clock set forward';
    if (this.#isSplit(earlier, later)) return 'two servers';
    if (this.#isBeyond(earlier)) return 'clock beyond the guard';
    return [earlier, later].some((one) => this.#isMeant(one)) ? 'revoked by force' : null;
  }

  /** One was granted by one server, and the holder of the other has been at the other since. */
  #isSplit(earlier: Granted, later: Granted): boolean {
    const nowMs = this.#parts.nowMs();
    const wasElsewhere = (one: Granted, { server }: Granted, sinceMs: number) =>
      one.server !== server ||
      [...(this.#servedMs.get(one.process) ?? [])].some(
        ([other, atMs]) => other !== server && atMs >= sinceMs,
      );
    return this.#splits.some(
      ({ fromMs, untilMs }) =>
        later.grantedMs >= fromMs &&
        nowMs <= untilMs &&
        (wasElsewhere(earlier, later, fromMs) || wasElsewhere(later, later, fromMs)),
    );
  }

  /** By its clock the lease lasts longer than by the store's: no guard was asked for that much. */
  #isBeyond({ process, ttlMs, guardMs = defaultGuardMs(ttlMs) }: Granted): boolean {
    const { rate } = this.#parts.storeHost ?? { rate: 1 };
    return (ttlMs - guardMs) / process.host.rate > (ttlMs - SLACK_OF_BEYOND_MS) / rate;
  }

  #countSlots({ pool }: Granted): void {
    if (pool === undefined) return;
    const held = [...this.#beliefs]
      .filter(([, beliefs]) =>
        [...beliefs].some((one) => one.pool?.name === pool.name && isBelieved(one)),
      )
      .map(([storeKey]) => storeKey);
    if (held.length > pool.slots)
      this.#parts.report('slots', pool.name, `${held.length} of ${pool.slots} slots are held`);
  }

  /**
   * A repeated acquire may have given its holder a later fence than the one it knows: the one in
   * the store was read.
   */
  #isMeant({ storeKey, holder, fence }: Belief): boolean {
    return this.#forced.some(
      (meant) => meant.storeKey === storeKey && meant.holder === holder && fence <= meant.fence,
    );
  }

  /**
   * No process that examined the store in [sinceMs, loss) has examined the server of this grant
   * between the loss and the grant.
   */
  #isUnnoticed(
    loss: Loss,
    { process, grantedMs, server }: Pick<Granted, 'process' | 'grantedMs' | 'server'>,
    sinceMs: number,
  ): boolean {
    const remembers = (all: readonly { readonly atMs: number }[]) =>
      all.some(({ atMs }) => atMs >= sinceMs && atMs < loss.atMs);
    if (remembers(this.#examined.get(process) ?? [])) return false;
    return ![...this.#examined.values()].some(
      (all) =>
        remembers(all) &&
        all.some((one) => one.server === server && one.atMs > loss.atMs && one.atMs <= grantedMs),
    );
  }

  #compareFences(granted: Granted): void {
    const { storeKey, fence, grantedMs } = granted;
    const newest = this.#newest.get(storeKey);
    const isNewest = newest === undefined || newest.grantedMs <= grantedMs;
    if (isNewest) this.#newest.set(storeKey, granted);
    if (newest === undefined) return;
    const [earlier, later] = isNewest ? [newest, granted] : [granted, newest];
    if (earlier.fence < later.fence) return;
    const isSetBack = this.#steps.some(({ atMs, ms }) => ms < 0 && atMs < later.grantedMs);
    const isLost = this.#losses.some(
      ({ atMs }) => earlier.grantedMs < atMs && atMs < later.grantedMs,
    );
    const isSplit = this.#splits.some(({ fromMs }) => fromMs <= later.grantedMs);
    const isElsewhere = isSplit && earlier.server !== later.server;
    if (isElsewhere) this.#parts.counters.add('not promised: two servers');
    else if (isSetBack && isLost) this.#parts.counters.add('not promised: store clock set back');
    else
      this.#parts.report(
        'grants',
        storeKey,
        `fence ${fence} was granted with ${newest.fence} there`,
      );
  }
}

/** Of the class with the shortest one. */
function defaultGuardMs(ttlMs: number): number {
  return Math.min(Math.max(ttlMs / 20, 100), 1_500);
}

/** Asks its process as its own code would; a trap that waits for its code is not sprung by that. */
function isBelieved({ process, isBelieved: ask }: Belief): boolean {
  if (process.isFrozen || process.isDead) return false;
  const { trap } = process;
  process.trap = null;
  try {
    return ask();
  } finally {
    process.trap = trap;
  }
}
