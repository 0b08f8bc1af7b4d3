/** Leases that are held, as far as is known: from a walk through the store, and from what the log has told since. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type {
  ApiLease,
  LeaseState,
  LeasesPage,
} from '../../../../src/client/operating-messages.ts';

export interface SeenLease {
  readonly key: string;
  readonly holder: string;
  readonly fence: string;
  /** On the browser's monotonic clock; Infinity for never. */
  readonly expiresAtMs: number;
}

export interface Held {
  readonly leases: ReadonlyMap<string, SeenLease>;
  /** The walk was cut off: there are more. */
  readonly hasMore: boolean;
}

/** Those that `GET /leases` lists; targets and workflows have classes, and views, of their own. */
const CLASSES = new Set<unknown>(['lease', 'resource']);

export async function walked(
  page: (query: { cursor?: string }) => Promise<LeasesPage>,
  most: number,
  nowMs: () => number,
): Promise<Held> {
  const leases = new Map<string, SeenLease>();
  let cursor: string | undefined;
  do {
    const next = await page(cursor === undefined ? {} : { cursor });
    for (const lease of next.leases) leases.set(lease.key, seen(lease, nowMs()));
    cursor = next.cursor;
  } while (cursor !== undefined && leases.size < most);
  return { leases, hasMore: cursor !== undefined };
}

/** With what the log has told: a holder has its lease until the log says otherwise. */
export function told(held: Held, events: readonly ApiEvent[], nowMs: number): Held {
  const ours = events.filter(({ leaseClass }) => CLASSES.has(leaseClass));
  if (ours.length === 0) return held;
  const leases = new Map(held.leases);
  for (const event of ours) {
    const { key, holder, fence } = event;
    if (typeof key !== 'string') continue;
    if (event.event === 'lease.acquired' || event.event === 'lease.reasserted') {
      const leftMs = typeof event.remainingMs === 'number' ? event.remainingMs : null;
      const lease = { key, holder: String(holder), fence: String(fence), expiresInMs: leftMs };
      leases.set(key, seen(lease, nowMs));
    } else if (ENDINGS.has(event.event) && leases.get(key)?.fence === fence) leases.delete(key);
  }
  return { ...held, leases };
}

/** These end the lease with that fence. An abandoned lease stays until it expires. */
const ENDINGS = new Set(['lease.released', 'lease.lost', 'lease.revoked', 'lease.transferred']);

/** With what the store has answered about one. */
export function looked(held: Held, state: LeaseState, nowMs: number): Held {
  const leases = new Map(held.leases);
  const { key, holder, fence, expiresInMs = null } = state;
  if (state.state === 'held' && holder !== undefined)
    leases.set(key, seen({ key, holder, fence, expiresInMs }, nowMs));
  else leases.delete(key);
  return { ...held, leases };
}

/** In order of key: the store may have none. */
export function beginningWith(held: Held, prefix: string): readonly SeenLease[] {
  return [...held.leases.values()]
    .filter(({ key }) => key.startsWith(prefix))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** An instance holds as `instance/…`: a worker with the session that it is for, others with a number of their own. */
export function partsOf(holder: string): { instance: string; session: string | null } {
  const [, instance = holder, rest = ''] = /^(.+)\/([^/]*)$/.exec(holder) ?? [];
  return { instance, session: SESSION.test(rest) ? rest : null };
}

const SESSION = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function seen({ key, holder, fence, expiresInMs }: ApiLease, nowMs: number): SeenLease {
  const expiresAtMs = expiresInMs === null ? Number.POSITIVE_INFINITY : nowMs + expiresInMs;
  return { key, holder, fence, expiresAtMs };
}
