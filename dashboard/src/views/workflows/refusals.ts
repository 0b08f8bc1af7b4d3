/**
 * What was sent by somebody who might not, and changed nothing: read back from the log, and added to as it happens.
 */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { HistoryPage, HistoryQuery } from '../../../../src/client/operating-messages.ts';
import { short } from '../short.ts';

/** What each code says about whoever was refused. */
export const CODES = {
  STALE_EPOCH:
    'The workflow had gone on: this was decided on what was past, or had been done before.',
  LEASE_VIOLATION: 'It came from another tenure: somebody who was replaced or revoked still wrote.',
  FUTURE_EPOCH: 'Something before it was missing, and nothing is applied out of order.',
  LEASE_EXPIRED: 'Its own lease had run out without a renewal, so it was not even sent.',
} as const;

export type Code = keyof typeof CODES;

export const VIOLATION = 'workflow.violation';

export interface Refusals {
  /** The latest first. */
  readonly events: readonly ApiEvent[];
  /** The log goes further back than was looked. */
  readonly hasMore: boolean;
}

/** Whoever is refused all the time shows in this many, too. */
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

/** What was expected and what came, as one short sentence. */
export function wrongOf(facts: Readonly<Record<string, unknown>>): string {
  const { code, actionEpoch, currentEpoch, expectedLease, receivedLease } = facts;
  if (typeof actionEpoch === 'number')
    return code === 'FUTURE_EPOCH'
      ? `epoch ${actionEpoch}, when only ${String(currentEpoch)} had been reached`
      : `epoch ${actionEpoch}, when ${String(currentEpoch)} had been reached`;
  return `lease ${short(receivedLease) ?? 'none'}, in the tenure of ${short(expectedLease) ?? 'nobody'}`;
}

function isCode(code: unknown): code is Code {
  return typeof code === 'string' && Object.hasOwn(CODES, code);
}
