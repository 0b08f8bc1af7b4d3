/**
 * The rules of `lease.pml` beside this file, for traces of the real code: what a store carried out,
 * what clients believed in and what they did, in order of time. Each rule has the name that stands
 * behind `rule:` there. Here time is in milliseconds, fences are numbers, and there are as many
 * clients and keys as a trace has.
 *
 * The model follows the store: a step that it refuses is named, and then taken all the same, so
 * that what comes after is judged by what the store has.
 */

/** All times are true ones, of an observer; clocks of clients and of stores differ by the drift. */
export type ModelEvent =
  /** `isOwed`: the grant may have been made before a loss, or is of a key that was handed over. */
  | Step<'granted', { fence: number; ttlMs: number; isClaim?: boolean; isOwed?: boolean }>
  | Step<'renewed', { ttlMs: number; attachedTo?: string }>
  | Step<'restored', { fence: number; ttlMs: number }>
  | Step<'released', { fence: number }>
  | Step<'transferred', { fence: number; newFence: number; to: string; windowMs: number }>
  | Step<'revoked', { newFence: number; isForced: boolean }>
  | { what: 'kept'; atMs: number; keepalive: string; ttlMs: number }
  /** The client counts on its lease until then. */
  | Step<'believed', { fence: number; untilMs: number }>
  | Step<'ended', { fence: number }>
  /** The client has stopped, and the key may be free; the trace has no word of the store. */
  | Step<'yielded', { fence: number }>
  /** The client works under its lease. */
  | Step<'acted', { fence: number }>
  /** A transaction that passed the guard has committed. */
  | Step<'committed', { fence: number }>
  /** The store may have forgotten grants. */
  | { what: 'lost'; atMs: number }
  /** The store's clock was set by so much: leases end earlier or later by that. */
  | { what: 'clockSet'; atMs: number; byMs: number };

type KeyEvent = Exclude<ModelEvent, { what: 'lost' | 'clockSet' | 'kept' }>;

type Step<What extends string, Facts> = {
  what: What;
  atMs: number;
  key: string;
  client: string;
} & Facts;

type Rule =
  | 'grant'
  | 'claim'
  | 'fence'
  | 'quarantine'
  | 'renew'
  | 'restore'
  | 'release'
  | 'transfer'
  | 'revoke'
  | 'keepalive'
  | 'attach'
  | 'believe'
  | 'act'
  | 'commit';

export interface Refusal {
  readonly rule: Rule;
  readonly key: string;
  readonly atMs: number;
  readonly text: string;
}

export interface ModelSetting {
  /** No lease is longer: so long does a quarantine last. */
  readonly boundMs: number;
  /** By which share of any time two clocks differ at most. */
  readonly drift: number;
  /** How exactly the trace says when something happened. */
  readonly slackMs: number;
}

interface Lease {
  /** Null: the key is free. `BARRED`: its last lease was revoked, and may still be believed in. */
  holder: string | null;
  untilMs: number;
  ttlMs: number;
  keepalive: string | null;
}

interface Belief {
  fence: number;
  untilMs: number;
}

interface Key {
  lease: Lease;
  /** False after a loss: the store may have any earlier lease, or none. */
  isKnown: boolean;
  /** The fence that the store has recorded; null where a loss may have changed it. */
  record: number | null;
  /** The highest that was granted or minted. */
  highest: number;
  /** Whom each fence was granted to; the oldest are dropped. */
  readonly owners: Map<number, string>;
  isOffered: boolean;
  /** By client: until when the store has confirmed its lease. */
  readonly covered: Map<string, { untilMs: number; ttlMs: number }>;
  readonly beliefs: Map<string, Belief>;
}

const BARRED = '!revoked';
/** So many fences of a key are remembered with their clients. */
const OWNERS_KEPT = 64;
/** So many clients of a key are remembered; a client whose lease ended longest ago is dropped. */
const CLIENTS_KEPT = 64;

export class LeaseModel {
  /** How many steps were judged. */
  steps = 0;
  readonly #setting: ModelSetting;
  readonly #keys = new Map<string, Key>();
  readonly #keepalives = new Map<string, number>();
  #lostMs = Number.NEGATIVE_INFINITY;

  constructor(setting: ModelSetting) {
    this.#setting = setting;
  }

  /** Whom a fence was granted to; undefined if the model does not know. */
  ownerOf(key: string, fence: number): string | undefined {
    return this.#keys.get(key)?.owners.get(fence);
  }

  /** Judges a step, and takes it. */
  take(event: ModelEvent): Refusal | null {
    const refusal = this.allows(event);
    this.#apply(event);
    this.steps++;
    return refusal;
  }

  /** Null, or the rule that the event would break. Changes nothing. */
  allows(event: ModelEvent): Refusal | null {
    const { atMs } = event;
    if (event.what === 'lost' || event.what === 'clockSet') return null;
    if (event.what === 'kept') {
      const text = this.#keptProblem(event);
      return text === null ? null : { rule: 'keepalive', key: '', atMs, text };
    }
    const key = this.#keys.get(event.key);
    const found = this.#problem(event, key ?? newKey());
    return found === null ? null : { ...found, key: event.key, atMs };
  }

  #problem(event: KeyEvent, key: Key): Pick<Refusal, 'rule' | 'text'> | null {
    if (event.what === 'granted') return this.#grantProblem(event, key);
    if (event.what === 'renewed') return this.#renewProblem(event, key);
    if (event.what === 'restored') return this.#restoreProblem(event, key);
    if (event.what === 'believed') return this.#beliefProblem(event, key);
    if (event.what === 'acted') return this.#actProblem(event, key);
    if (event.what === 'ended' || event.what === 'yielded') return null;
    if (event.what === 'committed')
      return event.fence < key.highest
        ? broken('commit', `${event.client} committed with ${event.fence} after ${key.highest}`)
        : null;
    return this.#finishProblem(event, key);
  }

  #grantProblem(
    { client, fence, atMs, isClaim, isOwed }: Extract<ModelEvent, { what: 'granted' }>,
    key: Key,
  ): Pick<Refusal, 'rule' | 'text'> | null {
    const isPresented = fence === key.record && key.lease.holder === client;
    if (fence <= key.highest && !isPresented)
      return broken('fence', `${client} was granted ${fence} after ${key.highest}`);
    if (isClaim && !key.isOffered)
      return broken('claim', `${client} claimed what was not handed over`);
    const waitMs = this.#lostMs + this.#setting.boundMs - this.#setting.slackMs - atMs;
    if (!isClaim && !isOwed && waitMs > 0)
      return broken('quarantine', `${client} was granted a key ${ms(waitMs)} too early`);
    const { holder } = key.lease;
    const leftMs = this.#untilMs(key.lease) - this.#tolerance(key.lease) - atMs;
    if (!key.isKnown || holder === null || holder === client || leftMs <= 0) return null;
    return broken('grant', `${client} was granted what ${holder} had for ${ms(leftMs)} more`);
  }

  #renewProblem(
    { client, atMs, attachedTo }: Extract<ModelEvent, { what: 'renewed' }>,
    key: Key,
  ): Pick<Refusal, 'rule' | 'text'> | null {
    const { holder } = key.lease;
    const isOver = this.#untilMs(key.lease) + this.#tolerance(key.lease) < atMs;
    if (key.isKnown && (holder !== client || isOver))
      return broken('renew', `${client} renewed a lease of ${holder ?? 'no client'}`);
    const aliveUntilMs = attachedTo === undefined ? undefined : this.#keepalives.get(attachedTo);
    return aliveUntilMs !== undefined && aliveUntilMs + this.#setting.slackMs < atMs
      ? broken('attach', `${client} attached a lease to a keepalive that had lapsed`)
      : null;
  }

  #restoreProblem(
    { client, fence, atMs }: Extract<ModelEvent, { what: 'restored' }>,
    key: Key,
  ): Pick<Refusal, 'rule' | 'text'> | null {
    const { holder } = key.lease;
    const leftMs = this.#untilMs(key.lease) - this.#tolerance(key.lease) - atMs;
    if (key.isKnown && holder !== null && holder !== client && leftMs > 0)
      return broken('restore', `${client} restored a key that ${holder} had`);
    return key.record !== null && key.record !== fence
      ? broken('restore', `${client} restored ${fence}, and ${key.record} was granted since`)
      : null;
  }

  #finishProblem(
    event: Extract<ModelEvent, { what: 'released' | 'transferred' | 'revoked' }>,
    key: Key,
  ): Pick<Refusal, 'rule' | 'text'> | null {
    const { client, what } = event;
    const rule = what === 'released' ? 'release' : what === 'transferred' ? 'transfer' : 'revoke';
    if (key.isKnown && key.lease.holder !== client)
      return broken(rule, `a lease of ${client} was ended, and ${key.lease.holder} had the key`);
    if (what !== 'revoked' && key.record !== null && key.record !== event.fence)
      return broken(rule, `${client} ended ${key.record} with ${event.fence}`);
    if (what !== 'released' && event.newFence <= key.highest)
      return broken('fence', `${what} with ${event.newFence}, which is no newer fence`);
    return null;
  }

  #beliefProblem(
    { client, fence, untilMs, atMs }: Extract<ModelEvent, { what: 'believed' }>,
    key: Key,
  ): Pick<Refusal, 'rule' | 'text'> | null {
    if (untilMs <= atMs) return null;
    const owner = key.owners.get(fence);
    if (owner !== undefined && owner !== client)
      return broken('believe', `${client} believes in ${fence}, which ${owner} was granted`);
    const covered = key.covered.get(client);
    if (covered === undefined)
      return broken('believe', `${client} believes in what it was never granted`);
    const lateMs = untilMs + covered.ttlMs * this.#setting.drift - covered.untilMs;
    if (lateMs > 0)
      return broken('believe', `${client} gives up ${ms(lateMs)} too late for its clock`);
    for (const [other, belief] of key.beliefs)
      if (other !== client && belief.untilMs > atMs + this.#setting.slackMs)
        return broken('believe', `${client} and ${other} both believe in it`);
    return null;
  }

  #actProblem(
    { client, fence, atMs }: Extract<ModelEvent, { what: 'acted' }>,
    key: Key,
  ): Pick<Refusal, 'rule' | 'text'> | null {
    const belief = key.beliefs.get(client);
    if (belief === undefined || belief.fence !== fence)
      return broken('act', `${client} worked with ${fence}, which it had given up`);
    return belief.untilMs + this.#setting.slackMs < atMs
      ? broken('act', `${client} worked ${ms(atMs - belief.untilMs)} after it had to give up`)
      : null;
  }

  #keptProblem({ keepalive, atMs }: Extract<ModelEvent, { what: 'kept' }>): string | null {
    const untilMs = this.#keepalives.get(keepalive);
    if (untilMs === undefined) return `keepalive ${keepalive} was renewed, and there is none`;
    const isLapsed = untilMs + this.#setting.slackMs < atMs;
    return isLapsed ? `keepalive ${keepalive} was renewed after it had lapsed` : null;
  }

  #apply(event: ModelEvent): void {
    if (event.what === 'lost') this.#lose(event);
    else if (event.what === 'clockSet') this.#setClock(event.byMs);
    else if (event.what === 'kept') this.#keep(event);
    else this.#applyTo(this.#keys.get(event.key) ?? newKey(), event);
  }

  #applyTo(key: Key, event: KeyEvent): void {
    const { client, atMs, what } = event;
    this.#keys.set(event.key, key);
    if (what === 'granted') this.#grant(key, event);
    else if (what === 'renewed') this.#renew(key, event);
    else if (what === 'restored') this.#restore(key, event);
    else if (what === 'released') this.#free(key, client);
    else if (what === 'yielded') this.#yield(key, event);
    else if (what === 'transferred') {
      this.#free(key, client);
      const { to: holder, windowMs: ttlMs } = event;
      key.lease = { ...FREE, holder, ttlMs, untilMs: atMs + ttlMs };
      this.#mint(key, event.newFence);
      key.isOffered = true;
    } else if (what === 'revoked') {
      const { ttlMs } = key.lease;
      const untilMs = this.#untilMs(key.lease);
      this.#mint(key, event.newFence);
      if (event.isForced) this.#free(key, client);
      else key.lease = { ...FREE, holder: BARRED, ttlMs, untilMs };
    } else if (what === 'believed') {
      key.beliefs.set(client, { fence: event.fence, untilMs: event.untilMs });
    } else if (what === 'ended' && key.beliefs.get(client)?.fence === event.fence) {
      key.beliefs.delete(client);
    }
  }

  #yield(key: Key, { client, fence }: Extract<ModelEvent, { what: 'yielded' }>): void {
    if (key.beliefs.get(client)?.fence === fence) key.beliefs.delete(client);
    // A store that forgot has no record until it grants the key again.
    const isRecorded = (key.record ?? fence) === fence;
    if (key.lease.holder === client && isRecorded) key.lease = { ...FREE };
  }

  #restore(key: Key, event: Extract<ModelEvent, { what: 'restored' }>): void {
    key.record = event.fence;
    this.#hold(key, event.client, event.atMs, event.ttlMs);
  }

  #grant(key: Key, event: Extract<ModelEvent, { what: 'granted' }>): void {
    const { client, atMs, fence, ttlMs } = event;
    const wasHolder = key.lease.holder === client;
    const untilMs = wasHolder ? this.#untilMs(key.lease) : 0;
    this.#mint(key, fence);
    key.owners.set(fence, client);
    const [oldest] = key.owners.keys();
    if (key.owners.size > OWNERS_KEPT && oldest !== undefined) key.owners.delete(oldest);
    key.lease = { ...FREE, untilMs: key.isKnown ? untilMs : 0 };
    this.#hold(key, client, atMs, ttlMs);
  }

  #renew(key: Key, { client, atMs, ttlMs, attachedTo }: Extract<ModelEvent, { what: 'renewed' }>) {
    if (key.lease.holder !== client) key.lease = { ...FREE };
    if (attachedTo !== undefined && key.lease.keepalive !== attachedTo) {
      key.lease.untilMs = this.#untilMs(key.lease);
      key.lease.keepalive = attachedTo;
    }
    if (attachedTo !== undefined) {
      const untilMs = this.#keepalives.get(attachedTo) ?? 0;
      this.#keepalives.set(attachedTo, Math.max(untilMs, atMs + ttlMs));
    }
    this.#hold(key, client, atMs, ttlMs);
  }

  /** The store has confirmed the lease: it lasts longer, and never less long. */
  #hold(key: Key, client: string, atMs: number, ttlMs: number): void {
    const { lease } = key;
    lease.holder = client;
    lease.ttlMs = Math.max(ttlMs, lease.untilMs - atMs);
    lease.untilMs = Math.max(lease.untilMs, atMs + ttlMs);
    key.isKnown = true;
    this.#cover(key, client, { untilMs: lease.untilMs, ttlMs });
  }

  #cover(key: Key, client: string, now: { untilMs: number; ttlMs: number }): void {
    const before = key.covered.get(client);
    // For a clock that is off by the drift, a longer lease that ends later may be over before.
    const sureMs = (of: typeof now) => of.untilMs - of.ttlMs * this.#setting.drift;
    key.covered.delete(client);
    key.covered.set(client, before !== undefined && sureMs(before) > sureMs(now) ? before : now);
    const [oldest] = key.covered.keys();
    if (key.covered.size <= CLIENTS_KEPT || oldest === undefined) return;
    key.covered.delete(oldest);
    key.beliefs.delete(oldest);
  }

  #mint(key: Key, fence: number): void {
    key.record = fence;
    key.highest = Math.max(key.highest, fence);
    key.isOffered = false;
  }

  #free(key: Key, client: string): void {
    key.lease = { ...FREE };
    key.beliefs.delete(client);
  }

  #keep({ keepalive, atMs, ttlMs }: Extract<ModelEvent, { what: 'kept' }>): void {
    const untilMs = Math.max(this.#keepalives.get(keepalive) ?? 0, atMs + ttlMs);
    this.#keepalives.set(keepalive, untilMs);
    for (const key of this.#keys.values()) {
      const { holder, keepalive: own } = key.lease;
      if (own === keepalive && holder !== null) this.#cover(key, holder, { untilMs, ttlMs });
    }
  }

  #lose({ atMs }: Extract<ModelEvent, { what: 'lost' }>): void {
    this.#lostMs = atMs;
    this.#keepalives.clear();
    for (const key of this.#keys.values()) {
      key.isKnown = false;
      key.isOffered = false;
      key.record = null;
    }
  }

  #setClock(byMs: number): void {
    for (const key of this.#keys.values()) key.lease.untilMs -= byMs;
  }

  #untilMs({ untilMs, keepalive }: Lease): number {
    return Math.max(untilMs, keepalive === null ? 0 : (this.#keepalives.get(keepalive) ?? 0));
  }

  /** How much earlier than by the trace a lease may end by the store's clock. */
  #tolerance({ ttlMs }: Lease): number {
    return this.#setting.slackMs + ttlMs * this.#setting.drift;
  }
}

const FREE: Readonly<Lease> = { holder: null, untilMs: 0, ttlMs: 0, keepalive: null };

function newKey(): Key {
  return {
    lease: { ...FREE },
    isKnown: true,
    record: null,
    highest: 0,
    owners: new Map(),
    isOffered: false,
    covered: new Map(),
    beliefs: new Map(),
  };
}

function broken(rule: Rule, text: string): Pick<Refusal, 'rule' | 'text'> {
  return { rule, text };
}

function ms(duration: number): string {
  return `${Math.round(duration)} ms`;
}
