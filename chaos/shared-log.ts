/**
 * What `holdfast verify` says of a history: it sees the events that the shared log would have, and what the sink accepted.
 * It knows less than the checker, so it must find nothing where the checker finds nothing.
 */
import { readTenures } from '../src/incident/logged-tenures.ts';
import type { SinkRecord } from '../src/incident/sink-records.ts';
import { type Finding, verifyTenures } from '../src/incident/verify.ts';
import type { LoggedEvent } from '../src/telemetry/event-log.ts';
import type { Standstill } from '../test/support/poll-record.ts';
import type { Entry } from './history.ts';
import { STANDSTILL_MS } from './timings.ts';

/** All processes read one clock, at slightly different moments. */
const SAME_CLOCK_MS = 50;

export function contradictionsOf(
  history: readonly Entry[],
  standstills: readonly Standstill[],
): readonly Finding[] {
  const read = readTenures(history.flatMap(loggedEvent));
  const writes = history
    .flatMap(sinkRecord)
    .filter(({ by, record }) => !stoodStill(standstills, by, record.at))
    .map(({ record }) => record);
  return verifyTenures(read, { toleranceMs: SAME_CLOCK_MS, writes }).contradictions;
}

/** The log has no fence of an algorithm without fences. */
function loggedEvent(entry: Entry, index: number): LoggedEvent[] {
  const { atMs: at, who, what, target, fence, deadlineMs, ...facts } = entry;
  if (!what.startsWith('lease.') || typeof fence !== 'number' || target === undefined) return [];
  const remainingMs = typeof deadlineMs === 'number' ? deadlineMs - at : 0;
  const about = { leaseClass: 'poll', key: target, holder: who, fence: String(fence) };
  const position = String(index);
  return [{ ...facts, ...about, remainingMs, position, at, instance: who, event: what }];
}

function sinkRecord(
  { atMs: at, what, target, fence, by }: Entry,
  line: number,
): { by: string; record: SinkRecord }[] {
  if (what !== 'sink.accepted' || typeof fence !== 'number' || target === undefined) return [];
  const record = { at, key: target, fence, accepted: true, sink: 'sink', line };
  return [{ by: String(by), record }];
}

/** A process that is stopped between its check and its write is late: the sink's matter. */
function stoodStill(standstills: readonly Standstill[], who: string, atMs: number): boolean {
  return standstills.some(
    ({ instance, fromMs, toMs }) =>
      instance === who && fromMs < atMs && toMs > atMs - 2 * STANDSTILL_MS,
  );
}
