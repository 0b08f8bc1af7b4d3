/** Steps that the store refused, which changed nothing: read from the log, and added to as they happen. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { HistoryPage, HistoryQuery } from '../../../../src/client/operating-messages.ts';
import { type Code, isCode } from '../../data/refusal-codes.ts';
import { short } from '../short.ts';

export const VIOLATION = 'workflow.violation';

export interface Refusals {
  /** The latest first. */
  readonly events: readonly ApiEvent[];
  /** The log goes further back than was looked. */
  readonly hasMore: boolean;
}

const MOST_KEPT = 10_000;
const PAGE = 1_000;

/** Looks back through the log, so many requests far at most. */
export async function refusalsOf(
  history: (query: HistoryQuery) => Promise<HistoryPage>,
  pages: number,
): Promise<Refusals> {
  const events: ApiEvent[] = [];
  let before: string | undefined;
  for (let i = 0; i < pages && events.length < MOST_KEPT; i++) {
    const page = await history({ event: VIOLATION, limit: PAGE, before });
    events.push(...page.events);
    before = page.before;
    if (before === undefined) break;
  }
  return { events, hasMore: before !== undefined };
}

/** With what has come since; some of that may have been read back already. */
export function withRefusals(known: Refusals, come: readonly ApiEvent[]): Refusals {
  const positions = new Set(known.events.map(({ position }) => position));
  const added = come.filter(
    ({ event, position }) => event === VIOLATION && !positions.has(position),
  );
  return { ...known, events: [...added.toReversed(), ...known.events].slice(0, MOST_KEPT) };
}

export function countsOf(events: readonly ApiEvent[]): Readonly<Record<Code, number>> {
  const counts = { STALE_EPOCH: 0, LEASE_VIOLATION: 0, FUTURE_EPOCH: 0, LEASE_EXPIRED: 0 };
  for (const { code } of events) if (isCode(code)) counts[code]++;
  return counts;
}

/** What came and what the store expected. `label` names a lease. */
export function wrongOf(
  facts: Readonly<Record<string, unknown>>,
  label: (leaseId: unknown) => string | null = short,
): string {
  const { code, actionEpoch, currentEpoch, expectedLease, receivedLease } = facts;
  if (typeof actionEpoch === 'number')
    return code === 'FUTURE_EPOCH'
      ? `epoch ${actionEpoch}, but the workflow was only at epoch ${String(currentEpoch)}`
      : `epoch ${actionEpoch}, but the workflow was at epoch ${String(currentEpoch)}`;
  return `lease ${label(receivedLease) ?? 'none'}, but the workflow had ${expectedLease === null ? 'no lease' : `lease ${label(expectedLease)}`}`;
}
