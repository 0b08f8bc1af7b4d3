/** Steps that the store refused, which changed nothing: read from the log, and added to as they happen. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { HistoryPage, HistoryQuery } from '../../../../src/client/operating-messages.ts';
import { short } from '../short.ts';

/** What each code means. */
export const CODES = {
  STALE_EPOCH: {
    name: 'Outdated step',
    means: 'The workflow had moved on: the sender acted on an old state, or repeated a step.',
  },
  LEASE_VIOLATION: {
    name: 'Replaced sender',
    means: 'Another process had claimed the workflow, or an operator had revoked the lease.',
  },
  FUTURE_EPOCH: {
    name: 'Step out of order',
    means: 'An earlier step was missing, and the store applies steps in order only.',
  },
  LEASE_EXPIRED: {
    name: 'Expired lease',
    means: 'The lease of the sender had expired, so its process did not send the step.',
  },
} as const;

export type Code = keyof typeof CODES;

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

/** `Outdated step` for STALE_EPOCH; a code that is not known as it is. */
export function codeName(code: unknown): string {
  return isCode(code) ? CODES[code].name : String(code);
}

function isCode(code: unknown): code is Code {
  return typeof code === 'string' && Object.hasOwn(CODES, code);
}
