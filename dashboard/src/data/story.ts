/**
 * What the log tells of a fleet: who owned each target, and what happened around that. It grows with old and new entries. The tenures of a
 * target are computed on demand, and kept until the log says something new of that target.
 */
import type { ApiEvent } from '../../../src/client/messages.ts';
import { numberOf, Tenancy, type Tenure, textOf } from './tenures.ts';

/** Entries that a story is made of: the names, or how they begin. */
export const TOLD = ['lease', 'target', 'member', 'fleet', 'store', 'session', 'operator'];

export type MarkKind =
  | 'crash'
  | 'left'
  | 'joined'
  | 'drain'
  | 'undrain'
  | 'outage'
  | 'quarantine'
  | 'forgot'
  | 'revoke'
  | 'pause'
  | 'resume'
  | 'operator';

/** Something that happened at a moment, or from one until another. */
export interface Mark {
  readonly kind: MarkKind;
  readonly at: number;
  /** Null: at one moment. Infinity: it has not ended, as far as is known. */
  readonly until: number | null;
  /** The instance that it happened to, or that did it. */
  readonly who: string | null;
  readonly target: string | null;
  readonly entry: ApiEvent;
}

/** Everybody who sees a member die writes that down; within this time they speak of the same death. */
const SAME_DEATH_MS = 60_000;

export class Story {
  readonly #seen = new Set<string>();
  readonly #tenancies = new Map<string, Tenancy>();
  readonly #worked = new Map<string, readonly Tenure[]>();
  readonly #changedAt = new Map<string, number>();
  readonly #ofTarget = new Map<string, Mark[]>();
  readonly #deaths = new Map<string, Mark[]>();
  readonly #stalls = new Map<string, Mark[]>();
  #marks: Mark[] = [];
  #isSorted = true;

  /** Whether anything of it was new. */
  add(entries: readonly ApiEvent[]): boolean {
    let isNew = false;
    for (const entry of entries) isNew = this.#note(entry) || isNew;
    return isNew;
  }

  /** Those that the log has something of, and when it last says something. */
  targets(): ReadonlyMap<string, number> {
    return this.#changedAt;
  }

  tenures(target: string): readonly Tenure[] {
    const known = this.#worked.get(target);
    if (known !== undefined) return known;
    const goneAt = (instance: string, after: number) => this.goneAt(instance, after);
    const tenures = this.#tenancies.get(target)?.tenures(goneAt) ?? [];
    this.#worked.set(target, tenures);
    return tenures;
  }

  /** What happened to the fleet as a whole, and what operators did; in order of time. */
  marks(): readonly Mark[] {
    if (!this.#isSorted) this.#marks.sort((a, b) => a.at - b.at);
    this.#isSorted = true;
    return this.#marks;
  }

  /** In order of time. */
  marksOf(target: string): readonly Mark[] {
    return [...(this.#ofTarget.get(target) ?? [])].sort((a, b) => a.at - b.at);
  }

  /** When an instance was seen to be dead, at a moment or later; null: it was not. */
  goneAt(instance: string, after: number): number | null {
    const deaths = this.#deaths.get(instance) ?? [];
    const times = deaths.flatMap(({ at }) => (at >= after ? [at] : []));
    return times.length === 0 ? null : Math.min(...times);
  }

  #note(entry: ApiEvent): boolean {
    const key = contentOf(entry);
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    const target = targetOf(entry);
    if (target !== null && isTenure(entry)) {
      const tenancy = this.#tenancies.get(target) ?? new Tenancy();
      this.#tenancies.set(target, tenancy);
      if (tenancy.add(entry)) this.#worked.delete(target);
      this.#changedAt.set(target, Math.max(entry.at, this.#changedAt.get(target) ?? 0));
    }
    this.#mark(entry, target);
    return true;
  }

  #mark(entry: ApiEvent, target: string | null): void {
    const kind = kindOf(entry);
    if (entry.event === 'fleet.resumed') this.#resumed(entry);
    if (kind === null) return;
    const who = textOf(entry.member) ?? textOf(entry.holder) ?? entry.instance;
    const mark: Mark = { kind, at: entry.at, until: untilOf(kind, entry), who, target, entry };
    if (kind === 'crash' && this.#isKnownDeath(mark)) return;
    if (target !== null) addTo(this.#ofTarget, target, mark);
    if (kind === 'outage') this.#stalled(mark);
    else this.#put(mark);
  }

  #put(mark: Mark): void {
    this.#marks.push(mark);
    this.#isSorted = false;
  }

  #replace(old: Mark, mark: Mark): void {
    this.#marks = this.#marks.map((one) => (one === old ? mark : one));
    this.#isSorted = false;
  }

  #isKnownDeath(mark: Mark): boolean {
    const who = mark.who ?? '';
    // What was worked out may rest on that this one was alive; deaths are rare, so all of it is.
    this.#worked.clear();
    const deaths = this.#deaths.get(who) ?? [];
    const same = deaths.find(({ at }) => Math.abs(at - mark.at) < SAME_DEATH_MS);
    if (same === undefined) {
      addTo(this.#deaths, who, mark);
      return false;
    }
    if (mark.at < same.at) {
      this.#deaths.set(who, [...deaths.filter((one) => one !== same), mark]);
      this.#replace(same, mark);
    }
    return true;
  }

  #stalled(mark: Mark): void {
    const who = mark.who ?? '';
    const known = this.#stalls.get(who) ?? [];
    // Its end may be known already: pages come from the latest back.
    const end = known.find(({ at, until }) => until !== null && at <= mark.at && mark.at <= until);
    const whole = end === undefined ? mark : { ...mark, until: end.until };
    this.#stalls.set(who, [...known.filter((one) => one !== end), whole]);
    if (end === undefined) this.#put(whole);
    else this.#replace(end, whole);
  }

  /** It says for how long the store was away, so it is enough to know of the whole outage. */
  #resumed(entry: ApiEvent): void {
    const { at, instance: who } = entry;
    const from = at - (numberOf(entry.afterMs) ?? 0);
    const known = this.#stalls.get(who) ?? [];
    const open = known.find((one) => one.until === Number.POSITIVE_INFINITY && one.at <= at);
    const mark: Mark = {
      kind: 'outage',
      at: open?.at ?? from,
      until: at,
      who,
      target: null,
      entry: open?.entry ?? entry,
    };
    this.#stalls.set(who, [...known.filter((one) => one !== open), mark]);
    if (open === undefined) this.#put(mark);
    else this.#replace(open, mark);
  }
}

/** After an answer that never came an entry may be there twice, at two positions. */
function contentOf(entry: ApiEvent): string {
  const { event, at, instance, key, member, subject, fence, store } = entry;
  const about = targetOf(entry) ?? key ?? member ?? subject ?? store ?? '';
  return `${event} ${at} ${instance} ${String(about)} ${String(fence ?? '')}`;
}

function isTenure({ event }: ApiEvent): boolean {
  return event.startsWith('lease.') || event === 'target.taken';
}

export function targetOf({ target, session, leaseClass, key }: ApiEvent): string | null {
  return textOf(target) ?? textOf(session) ?? (leaseClass === 'poll' ? textOf(key) : null);
}

const KINDS: Readonly<Record<string, MarkKind>> = {
  'member.joined': 'joined',
  'member.draining': 'drain',
  'member.undrained': 'undrain',
  'fleet.stalled': 'outage',
  'store.quarantined': 'quarantine',
  'store.forgot': 'forgot',
  'session.paused': 'pause',
  'session.resumed': 'resume',
  'operator.acted': 'operator',
};

function kindOf(entry: ApiEvent): MarkKind | null {
  if (entry.event === 'member.left') return entry.reason === 'expired' ? 'crash' : 'left';
  if (entry.event === 'lease.revoked') return entry.leaseClass === 'poll' ? 'revoke' : null;
  // Each keyspace waits for itself; the timeline is about targets.
  if (entry.event === 'store.quarantined' && entry.keyspace !== 'poll') return null;
  return Object.hasOwn(KINDS, entry.event) ? (KINDS[entry.event] ?? null) : null;
}

function untilOf(kind: MarkKind, entry: ApiEvent): number | null {
  if (kind === 'outage') return Number.POSITIVE_INFINITY;
  return kind === 'quarantine' ? entry.at + (numberOf(entry.leftMs) ?? 0) : null;
}

function addTo<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else known.push(value);
}
