/**
 * Who had something, from when until when, put together from the shared log.
 *
 * Entries come from instances whose clocks differ, may be there twice, and those of a process that was killed are missing. Only the fence
 * is always right: of two tenures of one key the later has the higher one. So entries are gathered by fence, tenures are ordered by it, and only then are
 * times looked at; where they contradict the fences, the fences are right and the difference is told (`overlapMs`).
 */

import type { ApiEvent } from '../../../src/client/messages.ts';
import { type Gap, readGap } from '../../../src/core/gap.ts';

/** What `target.taken` says, by the clock of the new owner. */
export interface Taking extends Gap {
  readonly at: number;
  readonly by: string;
  readonly from: string | null;
  /** The first owner of a target logs no `target.taken`: `lease.acquired` says it. */
  readonly how: 'handover' | 'failover';
}

/**
 * How a tenure ended. `ranOut`: its holder said nothing, and the next holder saw the lease expire. `gone`: its holder is dead, and the log does not
 * say yet when the lease expired. `followed`: another instance has it, and the log does not say how.
 */
type EndKind =
  | 'released'
  | 'transferred'
  | 'abandoned'
  | 'lost'
  | 'revoked'
  | 'ranOut'
  | 'gone'
  | 'followed';

export interface Ending {
  readonly kind: EndKind;
  readonly at: number;
  /** What was said of it: why it was lost, left or revoked; to whom it went. */
  readonly why: string | null;
  readonly successor: string | null;
  /** After a revocation: for how long its holder could still act. */
  readonly mayActForMs: number | null;
  /** How long after that its holder noticed, by its own clock; 0: at once. */
  readonly lateMs: number;
}

export interface Tenure {
  readonly holder: string;
  /** Null where the log does not have it. */
  readonly fence: string | null;
  /** Milliseconds since 1970; null: before what is known. */
  readonly from: number | null;
  readonly ending: Ending | null;
  readonly taking: Taking | null;
  /** When the holder put it back into a store that had forgotten it. */
  readonly reasserted: readonly number[];
  /**
   * By how much the times contradict the order of the fences, at its beginning; 0: they do not. Whether clocks differ, or the one before wrote its
   * end down late, is not known from that.
   */
  readonly overlapMs: number;
}

interface Notes {
  readonly fence: string;
  holder: string | null;
  acquiredAt: number | null;
  taking: Taking | null;
  readonly endings: Map<EndKind, { ending: Ending; heldForMs: number | null }>;
  readonly reasserted: Set<number>;
}

/** Differences below this are answers in flight: an owner hears of its handover after its successor does. */
const SAME_MOMENT_MS = 50;

/** What the log has of one key. Entries may come in any order and more than once. */
export class Tenancy {
  readonly #notes = new Map<string, Notes>();
  /** Told under the fence of the tombstone, which is a later one than that of the tenure it ends. */
  readonly #revocations = new Map<string, ApiEvent>();

  /** Whether it says something of a tenure. */
  add(entry: ApiEvent): boolean {
    const { event, at, instance } = entry;
    const fence = textOf(entry.fence);
    if (fence === null) return false;
    if (event === 'target.taken') {
      const notes = this.#of(fence);
      notes.holder ??= instance;
      notes.taking = takingOf(entry);
      return true;
    }
    const holder = textOf(entry.holder);
    if (holder === null) return false;
    if (event === 'lease.revoked') {
      this.#revocations.set(fence, entry);
      return true;
    }
    if (event === 'lease.acquired') this.#of(fence).acquiredAt = at;
    else if (event === 'lease.reasserted') this.#of(fence).reasserted.add(at);
    // Not an end: an API process leaves the lease to its client, which has the same name.
    else if (event === 'lease.transferred' && entry.successor === holder) this.#of(fence);
    else if (ENDINGS.has(event)) this.#end(this.#of(fence), entry);
    else return false;
    this.#of(fence).holder = holder;
    return true;
  }

  #of(fence: string): Notes {
    const known = this.#notes.get(fence) ?? notesOf(fence);
    this.#notes.set(fence, known);
    return known;
  }

  /** It ends the last tenure before it of the one it was taken from. Where the log has none so far, that one had it, and no more is known. */
  #revoke(fence: string, entry: ApiEvent): readonly Notes[] {
    const before = [...this.#notes.values()]
      .filter((notes) => notes.holder === entry.holder && compareFences(notes.fence, fence) <= 0)
      .sort((a, b) => compareFences(a.fence, b.fence))
      .at(-1);
    const notes = before ?? { ...notesOf(fence), holder: textOf(entry.holder) };
    this.#end(notes, entry);
    return before === undefined ? [notes] : [];
  }

  #end(notes: Notes, entry: ApiEvent): void {
    const kind = ENDINGS.get(entry.event);
    if (kind === undefined || notes.endings.has(kind)) return;
    // A process that stood still says late what had happened meanwhile.
    const lateMs = Math.max(0, numberOf(entry.lateMs) ?? 0);
    const ending: Ending = {
      kind,
      at: entry.at - lateMs,
      lateMs,
      why: textOf(entry.reason) ?? textOf(entry.why),
      successor: textOf(entry.successor),
      mayActForMs: numberOf(entry.mayActForMs),
    };
    const heldForMs = numberOf(entry.heldForMs);
    notes.endings.set(kind, { ending, heldForMs: heldForMs === null ? null : heldForMs - lateMs });
  }

  /** In the order of their fences. `goneAt`: when an instance was seen to be dead, at or after a moment; null: it was not. */
  tenures(goneAt: (instance: string, after: number) => number | null): readonly Tenure[] {
    const bare = [...this.#revocations].flatMap(([fence, entry]) => this.#revoke(fence, entry));
    const all = [...this.#notes.values(), ...bare];
    const sorted = all.sort((a, b) => compareFences(a.fence, b.fence));
    const begun = withForerunners(sorted.map(begin));
    return settled(begun, goneAt);
  }
}

function notesOf(fence: string): Notes {
  return {
    fence,
    holder: null,
    acquiredAt: null,
    taking: null,
    endings: new Map(),
    reasserted: new Set(),
  };
}

const ENDINGS: ReadonlyMap<string, EndKind> = new Map([
  ['lease.revoked', 'revoked'],
  ['lease.transferred', 'transferred'],
  ['lease.released', 'released'],
  ['lease.abandoned', 'abandoned'],
  ['lease.lost', 'lost'],
]);

/** Where a tenure ended in several ways, as a revoked one that its holder then lost, the first of these counts. */
const PRECEDENCE = [...ENDINGS.values()];

/** Decimal numbers of any length. */
export function compareFences(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

function begin({ fence, holder, acquiredAt, taking, endings, reasserted }: Notes): Tenure {
  const ended = PRECEDENCE.flatMap((kind) => endings.get(kind) ?? [])[0];
  const heldFrom = [...endings.values()]
    .flatMap(({ ending, heldForMs }) => (heldForMs === null ? [] : [ending.at - heldForMs]))
    .at(0);
  return {
    holder: holder ?? '?',
    fence,
    // Both are of the same moment; what explains a gap counts from the latter.
    from: taking?.at ?? acquiredAt ?? heldFrom ?? null,
    ending: ended?.ending ?? null,
    taking,
    reasserted: [...reasserted].sort((a, b) => a - b),
    overlapMs: 0,
  };
}

/** A new owner names the owner before. If the log has nothing of that one, it is put in front. */
function withForerunners(tenures: readonly Tenure[]): readonly Tenure[] {
  return tenures.flatMap((tenure, i) => {
    const from = tenure.taking?.from ?? null;
    const before = tenures[i - 1];
    // Who claims what it was given may remember itself as the one who had it: the store named it already.
    const isClaim = from === tenure.holder && before?.ending?.successor === from;
    const isKnown = from === null || from === before?.holder || isClaim;
    return isKnown ? [tenure] : [unrecorded(from), tenure];
  });
}

function unrecorded(holder: string): Tenure {
  return {
    holder,
    fence: null,
    from: null,
    ending: null,
    taking: null,
    reasserted: [],
    overlapMs: 0,
  };
}

function settled(
  tenures: readonly Tenure[],
  goneAt: (instance: string, after: number) => number | null,
): readonly Tenure[] {
  const result: Tenure[] = [];
  for (const [i, tenure] of tenures.entries()) {
    const before = result[i - 1];
    const started = startedAfter(tenure, before);
    if (before !== undefined) result[i - 1] = endedBefore(before, started);
    const next = tenures[i + 1];
    result.push({ ...started, ending: started.ending ?? endOf(started, next, goneAt) });
  }
  return result;
}

function startedAfter(tenure: Tenure, before: Tenure | undefined): Tenure {
  const { from } = tenure;
  const endedAt = before?.ending?.at ?? null;
  if (before === undefined || from === null) {
    // It began when the one before it ended, at the earliest, and nothing says that it was later.
    return before === undefined ? tenure : { ...tenure, from: endedAt };
  }
  const overlapMs = Math.max(0, (endedAt ?? from) - from);
  const floor = before.from ?? from;
  return {
    ...tenure,
    from: Math.max(from, floor),
    overlapMs: overlapMs > SAME_MOMENT_MS ? overlapMs : 0,
  };
}

/** Two never have it at once: what the clocks say of that is wrong. */
function endedBefore(tenure: Tenure, next: Tenure): Tenure {
  const { ending } = tenure;
  if (ending === null || next.from === null || ending.at <= next.from) return tenure;
  return { ...tenure, ending: { ...ending, at: next.from } };
}

function endOf(
  { holder, from }: Tenure,
  next: Tenure | undefined,
  goneAt: (instance: string, after: number) => number | null,
): Ending | null {
  const taking = next?.taking ?? null;
  const plain = { why: null, successor: null, mayActForMs: null, lateMs: 0 };
  if (taking?.how === 'failover' && taking.from === holder) {
    const at = Math.max(from ?? 0, taking.at - taking.wakeMs - taking.grantMs);
    return { ...plain, kind: 'ranOut', at };
  }
  const gone = goneAt(holder, from ?? 0);
  const nextFrom = next?.from ?? null;
  if (gone !== null && (nextFrom === null || gone <= nextFrom))
    return { ...plain, kind: 'gone', at: gone };
  if (next === undefined) return null;
  return { ...plain, kind: 'followed', at: nextFrom ?? from ?? 0, successor: next.holder };
}

/** The present owner in the store; and since when, if it moved while the dashboard was open. */
export interface Present {
  readonly owner: string | null;
  readonly since: number | null;
  readonly fence?: string;
}

/** The log is behind the store by a moment, and the picture behind the log: what has only just changed is left to the log. */
const CATCHING_UP_MS = 3_000;

/** Adds what the log does not have: owners since before the log begins, holders that log nothing, leases without a holder. */
export function withPresent(
  tenures: readonly Tenure[],
  { owner, since, fence }: Present,
  now: number,
): readonly Tenure[] {
  const last = tenures.at(-1);
  const changedAt = last === undefined ? null : (last.ending?.at ?? last.from);
  if (changedAt !== null && changedAt > now - CATCHING_UP_MS) return tenures;
  const told = last === undefined || last.ending !== null ? null : last.holder;
  if (owner === told) return tenures;
  const at = Math.max(since ?? now, changedAt ?? 0);
  const ended =
    last === undefined || last.ending !== null
      ? tenures
      : [...tenures.slice(0, -1), { ...last, ending: seenToEnd(owner, at) }];
  if (owner === null) return ended;
  const present = unrecorded(owner);
  return [...ended, { ...present, fence: fence ?? null, from: last === undefined ? null : at }];
}

function seenToEnd(owner: string | null, at: number): Ending {
  const kind = owner === null ? 'gone' : 'followed';
  return { kind, at, why: null, successor: owner, mayActForMs: null, lateMs: 0 };
}

function takingOf({ at, instance, from, how, ...facts }: ApiEvent): Taking | null {
  if (how !== 'handover' && how !== 'failover') return null;
  return { at, by: instance, from: textOf(from), how, ...readGap(facts) };
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
