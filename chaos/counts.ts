/** How often a run came to what it is for. A run in which something interesting never happened has not tested it. */
import type { Entry } from './history.ts';
import { faultsOf, gapsOf } from './liveness.ts';
import { actorsOf } from './tenures.ts';

export interface Counts {
  /** Of each kind that the topology knows, also those that never came. */
  readonly faults: Readonly<Record<string, number>>;
  readonly failedFaults: number;
  readonly states: Readonly<Record<string, number>>;
  readonly polls: number;
  readonly writes: number;
  readonly gaps: number;
  readonly longestGapMs: number;
}

type Test = (entry: Entry) => boolean;

const is =
  (what: string, reason?: string): Test =>
  (entry) =>
    entry.what === what && (reason === undefined || entry.reason === reason);

const STATES: Readonly<Record<string, Test>> = {
  'lease granted': is('lease.acquired'),
  'lease renewed': is('lease.extended'),
  'lease uncertain': is('lease.uncertain'),
  'certain again': is('lease.confirmed'),
  'lost: expired': is('lease.lost', 'expired'),
  'lost: taken over': is('lease.lost', 'taken_over'),
  'put back after the store forgot': is('lease.reasserted'),
  released: is('lease.released'),
  'handed over': is('lease.transferred'),
  'left to run out': is('lease.abandoned'),
  'given back after an unknown outcome': is('lease.returned'),
  'store found to have forgotten': is('store.forgot'),
  quarantined: is('store.quarantined'),
  'store lost sight of': is('store.disconnected'),
  'fleet out of sight': is('fleet.stalled'),
  'stood still': (entry) => entry.what === 'stood.still' && entry.who !== 'harness',
  'write fenced off by the sink': is('sink.refused'),
  'result fenced off by the store': is('result.refused'),
};

/** Of runs whose instances have transactions of their own. */
const GUARD_STATES: Readonly<Record<string, Test>> = {
  'transaction passed guard and committed': is('guard.passed'),
  'transaction refused by guard': is('guard.refused'),
  'transaction failed otherwise': is('guard.failed'),
  'commits compared: grants': is('commit.grant'),
  'commits compared: guarded writes': is('commit.write'),
  'timeline changed': is('timeline.changed'),
};

export function countsOf(history: readonly Entry[], kinds: readonly string[]): Counts {
  const { polls, tenures } = actorsOf(history);
  const faults = faultsOf(history);
  const gaps = gapsOf(history, polls);
  const killed = new Map(
    faults.filter(({ kind }) => kind === 'kill').map(({ victim, beganMs }) => [victim, beganMs]),
  );
  const takeovers = tenures.filter((tenure, i) => {
    const before = tenures.slice(0, i).findLast(({ target }) => target === tenure.target);
    const diedMs = before === undefined ? undefined : killed.get(before.instance);
    return diedMs !== undefined && diedMs > (before?.grantedMs ?? 0) && diedMs < tenure.grantedMs;
  });
  const count = (test: Test) => history.filter(test).length;
  const hasGuard = history.some(({ what }) => what.startsWith('guard.'));
  const seen = count(is('target.polled'));
  const states = { ...STATES, ...(hasGuard && GUARD_STATES) };
  return {
    faults: Object.fromEntries(
      kinds.map((kind) => [kind, faults.filter((fault) => fault.kind === kind).length]),
    ),
    failedFaults: count(is('fault.failed')),
    states: {
      ...Object.fromEntries(Object.entries(states).map(([name, test]) => [name, count(test)])),
      'taken over after a kill': takeovers.length,
      ...(seen > 0 && { 'poll seen by a target server': seen }),
    },
    polls: polls.length,
    writes: count(is('sink.accepted')),
    gaps: gaps.length,
    longestGapMs: Math.max(0, ...gaps.map(({ lastedMs }) => lastedMs)),
  };
}
