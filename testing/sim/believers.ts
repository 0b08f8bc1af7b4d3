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
 * - **store clock set back** (fences only): the store lost data after its clock was set back.
 */
import type { Counters } from './counters.ts';
import type { SimProcess } from './host.ts';
import type { ModelAudit } from './model-audit.ts';

/** One lease that a process was granted, and may believe in. */
export interface Belief {
  readonly storeKey: string;
  readonly process: SimProcess;
  readonly holder: string;
  readonly fence: number;
  readonly ttlMs: number;
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
  | 'store clock set back';

export const NON_PROMISES: readonly NonPromise[] = [
  'granted with quarantine off',
  'unnoticed emptying',
  'old primary',
  'store clock set forward',
  'revoked by force',
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
}

export interface BelieversParts {
  readonly nowMs: () => number;
  readonly counters: Counters;
  readonly boundMs: number;
  /** Told of losses, and of times in which nothing is promised. */
  readonly model?: Pick<ModelAudit, 'lost' | 'clockSet' | 'excuse'>;
  report(invariant: 'exclusion' | 'grants', storeKey: string, text: string): void;
}

/** What the quarantine adds to the bound, and how exactly a loss and a grant are placed in time. */
const MARGIN_MS = 1_000;
const SLACK_MS = 500;

export class Believers {
  readonly #parts: BelieversParts;
  readonly #beliefs = new Map<string, Set<Granted>>();
  readonly #contested = new Set<string>();
  readonly #newest = new Map<string, Granted>();
  /** When the server made each grant, by process and fence. */
  readonly #grantedMs = new Map<string, number>();
  readonly #examinedMs = new Map<SimProcess, number[]>();
  readonly #losses: Loss[] = [];
  readonly #steps: { readonly atMs: number; readonly ms: number }[] = [];
  readonly #forced: Pick<Belief, 'storeKey' | 'holder' | 'fence'>[] = [];
  readonly #counted = new WeakMap<Granted, Set<Granted>>();

  constructor(parts: BelieversParts) {
    this.#parts = parts;
  }

  /** The store has carried out an acquire of this process, and granted these fences. */
  granted(process: SimProcess, fences: readonly number[]): void {
    for (const fence of fences)
      this.#grantedMs.set(`${process.name} ${fence}`, this.#parts.nowMs());
  }

  /** The store has compared itself with its marker, for this process. */
  examined(process: SimProcess): void {
    const times = this.#examinedMs.get(process) ?? [];
    this.#examinedMs.set(process, times);
    times.push(this.#parts.nowMs());
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
  isEarly(process: SimProcess, isOff: boolean): boolean {
    const { boundMs, nowMs } = this.#parts;
    const granted = { process, grantedMs: nowMs() };
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
    const grantedMs = this.#grantedMs.get(name) ?? this.#parts.nowMs();
    this.#grantedMs.delete(name);
    const granted: Granted = { ...belief, grantedMs };
    const beliefs = this.#beliefs.get(storeKey) ?? new Set();
    this.#beliefs.set(storeKey, beliefs.add(granted));
    if (beliefs.size > 1) this.#contested.add(storeKey);
    this.#compareFences(granted);
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
    return [earlier, later].some((one) => this.#isMeant(one)) ? 'revoked by force' : null;
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
   * No process that examined the store in [sinceMs, loss) has examined it between the loss and this
   * grant.
   */
  #isUnnoticed(
    { atMs }: Loss,
    { process, grantedMs }: Pick<Granted, 'process' | 'grantedMs'>,
    sinceMs: number,
  ): boolean {
    const remembers = (times: readonly number[]) => times.some((ms) => ms >= sinceMs && ms < atMs);
    if (remembers(this.#examinedMs.get(process) ?? [])) return false;
    return ![...this.#examinedMs.values()].some(
      (times) => remembers(times) && times.some((ms) => ms > atMs && ms <= grantedMs),
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
    if (isSetBack && isLost) this.#parts.counters.add('not promised: store clock set back');
    else
      this.#parts.report(
        'grants',
        storeKey,
        `fence ${fence} was granted with ${newest.fence} there`,
      );
  }
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
