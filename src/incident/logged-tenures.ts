/**
 * Which holder had which key, and when, as instances wrote it into the shared log.
 *
 * Every time here is of the clock of the instance that wrote the entry. A tenure begins when its
 * holder learned of the grant. It ends when its holder could act no longer, which the entry says:
 * a loss may be noticed late, and a release is answered later than it was sent.
 */
import type { LoggedEvent } from '../telemetry/event-log.ts';

export type TenureEnd = 'lost' | 'released' | 'transferred' | 'abandoned';

/** One line of `verify` and of the report: where a key was in doubt, between two moments. */
export interface Doubt {
  readonly fromMs: number;
  /** Null: the log has no confirmation, and no end. */
  untilMs: number | null;
  readonly reason: string;
}

export interface LoggedTenure {
  readonly leaseClass: string;
  readonly key: string;
  readonly holder: string;
  /** The instance that wrote the entries. */
  readonly instance: string;
  readonly fence: number;
  /** Null: the log does not go back so far. */
  readonly granted: LoggedEvent | null;
  readonly fromMs: number;
  /** How long the request took that was granted. */
  readonly tookMs: number;
  readonly ttlMs: number;
  /** The holder believed until then, whatever happened, unless an entry says that it ended. */
  leastUntilMs: number;
  ended: LoggedEvent | null;
  how: TenureEnd | null;
  /** Null: the log has no end of it. */
  untilMs: number | null;
  /** The holder is a program that uses the HTTP API: its process writes no log. */
  isElsewhere: boolean;
  readonly doubts: Doubt[];
  readonly reassertions: LoggedEvent[];
}

/** An operator took the key from its holder. */
export interface LoggedRevocation {
  readonly event: LoggedEvent;
  readonly holder: string;
  readonly isForced: boolean;
  /** How long the revoked holder and the next may both act. */
  readonly mayActForMs: number;
}

/** All that the log says of one key. */
export interface LoggedKey {
  readonly key: string;
  readonly leaseClass: string;
  /** In the order of the log. */
  readonly tenures: LoggedTenure[];
  readonly revocations: LoggedRevocation[];
}

export interface LoggedTenures {
  readonly keys: readonly LoggedKey[];
  /** When each instance wrote its last entry. */
  readonly lastMs: ReadonlyMap<string, number>;
  /** How many entries of an instance are missing. */
  readonly dropped: ReadonlyMap<string, number>;
  /** Processes that were dead by proof before their leases were granted again. */
  readonly dead: ReadonlySet<string>;
}

const ENDS: Readonly<Record<string, TenureEnd>> = {
  'lease.lost': 'lost',
  'lease.released': 'released',
  'lease.transferred': 'transferred',
  'lease.abandoned': 'abandoned',
};

/** Reads entries in the order of the log, the oldest first. */
export function readTenures(events: Iterable<LoggedEvent>): LoggedTenures {
  const reading = new TenuresReader();
  for (const event of events) reading.take(event);
  return reading;
}

/** A key is held by one holder at a time in its keyspace: two classes share theirs. */
function keyspaceOf(leaseClass: string): string {
  return leaseClass === 'resource' ? 'lease' : leaseClass;
}

class TenuresReader implements LoggedTenures {
  readonly lastMs = new Map<string, number>();
  readonly dropped = new Map<string, number>();
  readonly dead = new Set<string>();
  readonly #keys = new Map<string, LoggedKey>();
  readonly #tenures = new Map<string, LoggedTenure>();
  /** Those of holders over HTTP, whose end any API process may have written. */
  readonly #elsewhere = new Map<string, LoggedTenure>();

  get keys(): LoggedKey[] {
    return [...this.#keys.values()];
  }

  take(event: LoggedEvent): void {
    const { instance, at } = event;
    this.lastMs.set(instance, Math.max(this.lastMs.get(instance) ?? at, at));
    if (event.event === 'log.dropped') {
      this.dropped.set(instance, (this.dropped.get(instance) ?? 0) + numberOf(event.count));
    } else if (event.event === 'worker.reclaimed') {
      this.dead.add(textOf(event.predecessor));
    } else if (event.event === 'workflow.revoked') {
      this.#revokeWorkflow(event);
    } else if (event.event === 'lease.revoked') {
      this.#revoke(event);
    } else if (event.event.startsWith('lease.')) {
      this.#takeLease(event);
    }
  }

  #takeLease(event: LoggedEvent): void {
    const elsewhere = event.heldForMs === null && this.#elsewhere.get(elsewhereName(event));
    if (elsewhere) {
      elsewhere.untilMs ??= event.at;
      return;
    }
    const tenure = this.#tenureOf(event);
    if (tenure === null || event === tenure.granted) return;
    const how = ENDS[event.event];
    if (how !== undefined) this.#end(tenure, event, how);
    else if (event.event === 'lease.acquired') reopen(tenure, event);
    else if (event.event === 'lease.reasserted') tenure.reassertions.push(event);
    else if (event.event === 'lease.uncertain') {
      const { at: fromMs, reason } = event;
      tenure.doubts.push({ fromMs, untilMs: null, reason: textOf(reason) });
    } else if (event.event === 'lease.confirmed') {
      endDoubt(tenure, event.at);
    }
  }

  /** The tenure that an entry is about. The same entry may be in the log twice. */
  #tenureOf(event: LoggedEvent): LoggedTenure | null {
    const { instance, holder, key, leaseClass } = event;
    const fence = Number(event.fence);
    if (typeof holder !== 'string' || typeof key !== 'string') return null;
    if (typeof leaseClass !== 'string' || !Number.isSafeInteger(fence)) return null;
    const name = JSON.stringify([keyspaceOf(leaseClass), key, fence, holder, instance]);
    const known = this.#tenures.get(name);
    if (known !== undefined) return known;
    const tenure = newTenure(event, { leaseClass, key, holder, instance, fence });
    this.#tenures.set(name, tenure);
    this.#keyOf(leaseClass, key).tenures.push(tenure);
    return tenure;
  }

  #keyOf(leaseClass: string, key: string): LoggedKey {
    const name = `${keyspaceOf(leaseClass)} ${key}`;
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const made: LoggedKey = { key, leaseClass, tenures: [], revocations: [] };
    this.#keys.set(name, made);
    return made;
  }

  #end(tenure: LoggedTenure, event: LoggedEvent, how: TenureEnd): void {
    if (tenure.ended !== null) return;
    tenure.ended = event;
    tenure.how = how;
    tenure.isElsewhere = how === 'transferred' && event.successor === tenure.holder;
    tenure.untilMs = tenure.isElsewhere ? null : endMs(tenure, event);
    if (tenure.isElsewhere) this.#elsewhere.set(elsewhereName(event), tenure);
    endDoubt(tenure, tenure.untilMs ?? event.at);
  }

  #revoke(event: LoggedEvent): void {
    const { leaseClass, key, holder, force, mayActForMs } = event;
    if (typeof leaseClass !== 'string' || typeof key !== 'string') return;
    this.#keyOf(leaseClass, key).revocations.push({
      event,
      holder: textOf(holder),
      isForced: force === true,
      mayActForMs: numberOf(mayActForMs),
    });
  }

  /** It frees the workflow at once: whatever the revoked holder still emits is refused. */
  #revokeWorkflow(event: LoggedEvent): void {
    const { workflow, leaseId } = event;
    if (typeof workflow !== 'string') return;
    this.#keyOf('workflow', workflow).revocations.push({
      event,
      holder: textOf(leaseId),
      isForced: true,
      mayActForMs: Number.POSITIVE_INFINITY,
    });
  }
}

/** The name of a holder over HTTP is its own in all processes. */
function elsewhereName({ key, fence, holder }: LoggedEvent): string {
  return JSON.stringify([key, fence, holder]);
}

type TenureName = Pick<LoggedTenure, 'leaseClass' | 'key' | 'holder' | 'instance' | 'fence'>;

function newTenure(event: LoggedEvent, name: TenureName): LoggedTenure {
  const isGrant = event.event === 'lease.acquired';
  const heldMs = isGrant ? 0 : numberOf(event.heldForMs) + numberOf(event.lateMs);
  const fromMs = event.at - heldMs;
  return {
    ...name,
    granted: isGrant ? event : null,
    fromMs,
    tookMs: isGrant ? numberOf(event.tookMs) : 0,
    ttlMs: isGrant ? numberOf(event.ttlMs) : 0,
    leastUntilMs: isGrant ? fromMs + numberOf(event.remainingMs) : fromMs,
    ended: null,
    how: null,
    untilMs: null,
    isElsewhere: false,
    doubts: [],
    reassertions: [],
  };
}

/**
 * When the holder stopped acting. `heldForMs` counts on the monotonic clock from the sending of the
 * request that was granted; `lateMs` is how long after the deadline a loss was noticed.
 */
function endMs(tenure: LoggedTenure, { at, heldForMs, lateMs }: LoggedEvent): number {
  if (tenure.granted === null || typeof heldForMs !== 'number') return at - numberOf(lateMs);
  const heldMs = Math.max(0, heldForMs - tenure.tookMs - numberOf(lateMs));
  return Math.min(at, tenure.fromMs + heldMs);
}

/** A holder that presents its fence keeps it, and continues. A repeated entry changes nothing. */
function reopen(tenure: LoggedTenure, event: LoggedEvent): void {
  if (tenure.ended === null || event.at <= tenure.ended.at) return;
  tenure.leastUntilMs = event.at + numberOf(event.remainingMs);
  tenure.ended = null;
  tenure.how = null;
  tenure.untilMs = null;
}

function endDoubt({ doubts }: LoggedTenure, atMs: number): void {
  const last = doubts.at(-1);
  if (last !== undefined && last.untilMs === null) last.untilMs = atMs;
}

function numberOf(fact: unknown): number {
  return typeof fact === 'number' && Number.isFinite(fact) ? fact : 0;
}

function textOf(fact: unknown): string {
  return typeof fact === 'string' ? fact : '';
}
