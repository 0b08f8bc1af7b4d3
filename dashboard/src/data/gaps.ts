/**
 * The gap between two owners of a target, and why it took as long as it did. `target.taken` has the figures; if the log does not have that
 * entry, nothing is made up.
 */
import { STANDSTILL_MS } from '../../../src/core/gap.ts';
import type { Mark } from './story.ts';
import type { Ending, Taking, Tenure } from './tenures.ts';
import { exactly } from './words.ts';

/**
 * `failover`: the lease of the owner before expired. `handover`: the owner before handed the target over. `revoked`: an operator revoked the
 * lease. `paused`: an operator had paused the target. `unsaid`: the log does not say.
 */
type GapKind = 'failover' | 'handover' | 'revoked' | 'paused' | 'unsaid';

export interface Gap {
  readonly kind: GapKind;
  readonly target: string;
  /** Where a lease expired: the last renewal of its holder, which has given no sign of life since. */
  readonly from: number;
  /** Null: it has not ended. */
  readonly until: number | null;
  /** As the one who took it has measured it, which is what every other place shows; null: it has not ended. */
  readonly lengthMs: number | null;
  readonly before: Tenure | null;
  readonly after: Tenure | null;
}

/** One between each two owners, even if it took no time; and one after the last owner, if that has ended. */
export function gapsOf(
  target: string,
  tenures: readonly Tenure[],
  marks: readonly Mark[],
): readonly Gap[] {
  return tenures.flatMap((before, i) => {
    const { ending } = before;
    if (ending === null) return [];
    const after = tenures[i + 1] ?? null;
    const endedAt = ending.at;
    const until = after === null ? null : Math.max(endedAt, after.from ?? endedAt);
    const kind = kindOf(ending, after, marks, until);
    const taking = takingFrom(before, after);
    const isMeasured = taking !== null && kind === 'failover';
    const from = isMeasured ? Math.max(before.from ?? 0, taking.at - taking.gapMs) : endedAt;
    const lengthMs = taking?.gapMs ?? (until === null ? null : until - from);
    return [{ kind, target, from, until, lengthMs, before, after }];
  });
}

/** What the one after says of having it from the one before; null where it says nothing of that one. */
function takingFrom({ holder }: Tenure, after: Tenure | null): Taking | null {
  const taking = after?.taking ?? null;
  return taking?.from === holder ? taking : null;
}

/** How long it is, or has been so far. */
export function lengthOf({ lengthMs, from }: Gap, now: number): number {
  return lengthMs ?? Math.max(0, now - from);
}

function kindOf(
  ending: Ending,
  after: Tenure | null,
  marks: readonly Mark[],
  until: number | null,
): GapKind {
  if (ending.kind === 'revoked') return 'revoked';
  if (ending.kind === 'transferred') return 'handover';
  if (isPausedAt(marks, ending.at, until)) return 'paused';
  if (after?.taking?.how === 'failover') return 'failover';
  if (after?.taking?.how === 'handover') return 'handover';
  const isOver = ending.kind === 'ranOut' || ending.kind === 'gone' || ending.kind === 'lost';
  return isOver || ending.kind === 'abandoned' ? 'failover' : 'unsaid';
}

/** The owner of a paused target releases it a moment later; by the clock of another instance, perhaps a moment before. */
const PAUSE_SLACK_MS = 15_000;

function isPausedAt(marks: readonly Mark[], at: number, until: number | null): boolean {
  return marks.some(
    (mark) =>
      mark.kind === 'pause' &&
      mark.at >= at - PAUSE_SLACK_MS &&
      mark.at <= (until ?? Number.POSITIVE_INFINITY) &&
      !marks.some(({ kind, at: then }) => kind === 'resume' && then > mark.at && then < at),
  );
}

/** A stretch of a gap, for the drawing. */
export interface Stretch {
  readonly name: string;
  readonly fromMs: number;
  readonly lengthMs: number;
  /** Whether an instance owned it then. */
  readonly isOwned: boolean;
}

export interface Explanation {
  readonly title: string;
  /** One after the other, as it happened. */
  readonly steps: readonly string[];
  /** Null where the log does not have the arithmetic. */
  readonly stretches: readonly Stretch[] | null;
  /** `30 s + 12 ms + 8 ms = 30.02 s` and what that is; null as above. */
  readonly sum: string | null;
  /** What of it is not known, and why. */
  readonly unsaid: readonly string[];
}

/** How instances and moments are called. */
export interface Words {
  name(instance: string): string;
  time(wallMs: number): string;
}

/** `around`: marks of the fleet, of which those count that fall into the gap, or made it. */
export function explain(gap: Gap, around: readonly Mark[], words: Words): Explanation {
  const { before, after } = gap;
  const taking = after?.taking ?? null;
  const isRevoked = before?.ending?.kind === 'revoked';
  const isRunOut = taking?.how === 'failover' && taking.from === before?.holder && !isRevoked;
  const steps = [
    ...beginning(gap, around, words),
    ...(before?.ending ? endingSteps(before, before.ending, isRunOut, words) : []),
    ...(taking === null ? [] : takingSteps(taking, before, words)),
    ...meanwhile(gap, around, words),
  ];
  return {
    title: titleOf(gap, words),
    steps,
    stretches: isRunOut && taking.silentMs > 0 ? stretchesOf(taking) : null,
    sum: isRunOut ? sumOf(taking) : null,
    unsaid: unsaidOf(gap, words),
  };
}

function titleOf(gap: Gap, { name }: Words): string {
  const { target, kind, before, after, lengthMs } = gap;
  if (lengthMs === null) return `${target} has no owner`;
  if (kind === 'handover') {
    const whose = before === null ? '' : ` from ${name(before.holder)}`;
    return `${target} moved${whose} to ${after === null ? 'no owner' : name(after.holder)}`;
  }
  if (kind === 'paused') return `${target} was paused`;
  return `No owner worked on ${target} for ${exactly(lengthMs)}`;
}

/** Why it began, where an operator or a death did it. */
function beginning(gap: Gap, around: readonly Mark[], words: Words): string[] {
  const { target, from, before } = gap;
  const { name, time } = words;
  const holder = before?.holder ?? null;
  const endedAt = before?.ending?.at ?? from;
  const lately = ({ at }: Mark) => at <= endedAt + PAUSE_SLACK_MS && at >= from - LATELY_MS;
  return around.filter(lately).flatMap((mark) => {
    const { kind, at, entry } = mark;
    if (kind === 'operator' && entry.subject === target && MOVING.test(text(entry.action)))
      return [
        `${text(entry.by)} ordered ${text(entry.action)} at ${time(at)}${because(entry.reason)}.`,
      ];
    if (mark.who !== holder || holder === null) return [];
    if (kind === 'drain')
      return [`${name(holder)} was draining since ${time(at)}: it hands over all its targets.`];
    // An instance that handed it over and died afterwards had nothing to do with the gap.
    if (kind === 'crash' && gap.kind === 'failover')
      return [
        `${name(holder)} gave no sign of life: the other instances saw its heartbeat expire at ${time(at)}.`,
      ];
    return [];
  });
}

/** What operators do that makes a target change hands; a revocation tells of itself. */
const MOVING = /transfer|pause|remove|unpin/;

/** How long before a gap something can have led to it: the longest a holder takes to finish and to hand over, generously. */
const LATELY_MS = 120_000;

function endingSteps(
  { holder }: Tenure,
  ending: Ending,
  isRunOut: boolean,
  { name, time }: Words,
): string[] {
  const who = name(holder);
  const at = time(ending.at);
  switch (ending.kind) {
    case 'released':
      return [`${who} released it at ${at}.`];
    case 'transferred':
      return [
        `${who} finished its poll and handed it to ${name(ending.successor ?? '?')} at ${at}. The store made that instance the next owner at once, so no other instance could take it.`,
      ];
    case 'abandoned':
      return [`${who} stopped at ${at} and let the lease expire: ${ending.why ?? '?'}.`];
    case 'lost':
      if (ending.lateMs >= STANDSTILL_MS) return [standstill(who, at, ending, time)];
      return [
        ending.why === 'expired'
          ? `${who} stopped at ${at}: the store had confirmed no renewal before its deadline, which is the TTL less a safety margin.`
          : `${who} lost it at ${at}: ${lossText(ending.why)}.`,
      ];
    case 'revoked':
      return [revocation(who, at, ending)];
    case 'gone':
      return isRunOut
        ? []
        : [
            `${who} is gone since ${at}. Its lease has to expire before another instance can take over.`,
          ];
    default:
      return [];
  }
}

function standstill(who: string, at: string, ending: Ending, time: Words['time']): string {
  const noticedAt = time(ending.at + ending.lateMs);
  return `${who} did not run for a while: its process was frozen, asleep or blocked. Its deadline was at ${at}; it noticed at ${noticedAt}, ${exactly(ending.lateMs)} late.`;
}

function revocation(who: string, at: string, { why, mayActForMs }: Ending): string {
  const still =
    mayActForMs === null || mayActForMs === 0
      ? 'It was free at once.'
      : `${who} could still act for ${exactly(mayActForMs)}, and the store granted it to no instance before that.`;
  return `An operator revoked it from ${who} at ${at}${because(why)}. ${still}`;
}

function takingSteps(taking: Taking, before: Tenure | null, { name, time }: Words): string[] {
  const { at, by, gapMs, silentMs, wakeMs, grantMs } = taking;
  // The one who gave it knows better than the one who got it.
  const how = before?.ending?.kind === 'transferred' ? 'handover' : taking.how;
  const who = name(by);
  const granted = `The store granted it to ${who} ${exactly(grantMs)} later, at ${time(at)}.`;
  if (how === 'handover')
    return [
      gapMs === 0
        ? `${who} took it at ${time(at)}.`
        : `${who} heard of the handover and asked for it ${exactly(wakeMs)} later.`,
      ...(gapMs === 0 ? [] : [granted]),
    ];
  const ranOutAt = at - wakeMs - grantMs;
  const whose = taking.from === by ? `${who} had owned it before, and` : name(taking.from ?? '?');
  const isRevoked = before?.ending?.kind === 'revoked';
  return [
    ...(isRevoked ? [`${who} saw the revocation at ${time(ranOutAt)}.`] : []),
    ...(silentMs > 0
      ? [
          `${whose} renewed its lease for the last time at ${time(ranOutAt - silentMs)}. A lease lasts ${exactly(silentMs)} (TTL) without a renewal, so it expired at ${time(ranOutAt)}.`,
        ]
      : []),
    `${who} woke up and asked for it ${exactly(wakeMs)} after that.`,
    granted,
  ];
}

/** Why no instance could take it: the store was unavailable, or granted nothing. */
function meanwhile({ from, until }: Gap, around: readonly Mark[], { name, time }: Words): string[] {
  const end = until ?? Number.POSITIVE_INFINITY;
  return around.flatMap(({ kind, at, until: over, who }) => {
    if (over === null || at > end || over < from) return [];
    const to = Number.isFinite(over) ? `until ${time(over)}` : 'and has not reached it since';
    if (kind === 'outage')
      return [`${name(who ?? '?')} could not reach the store from ${time(at)} ${to}.`];
    if (kind === 'quarantine')
      return [
        `The store was in quarantine from ${time(at)} ${to}: it may have lost grants, so it made none.`,
      ];
    return [];
  });
}

function stretchesOf({ at, wakeMs, grantMs, silentMs }: Taking): readonly Stretch[] {
  const ranOutAt = at - wakeMs - grantMs;
  return [
    { name: 'TTL', fromMs: ranOutAt - silentMs, lengthMs: silentMs, isOwned: true },
    { name: 'wake-up', fromMs: ranOutAt, lengthMs: wakeMs, isOwned: false },
    { name: 'grant', fromMs: ranOutAt + wakeMs, lengthMs: grantMs, isOwned: false },
  ];
}

function sumOf({ gapMs, silentMs, wakeMs, grantMs }: Taking): string {
  const parts = `${exactly(wakeMs)} wake-up + ${exactly(grantMs)} grant`;
  if (silentMs === 0) return `${parts} = ${exactly(gapMs)}`;
  return `${exactly(silentMs)} TTL + ${parts} = ${exactly(gapMs)} since the last renewal`;
}

function unsaidOf({ before, after, until }: Gap, { name }: Words): string[] {
  const taking = after?.taking ?? null;
  const ending = before?.ending?.kind;
  return [
    ...(after !== null && taking === null
      ? [
          `The log has no target.taken entry of ${name(after.holder)}, so it is unknown when the lease before expired.`,
        ]
      : []),
    ...(ending === 'followed'
      ? [
          `The log does not say how ${name(before?.holder ?? '?')} lost it: a process that is killed loses its last quarter of a second of log.`,
        ]
      : []),
    ...(ending === 'gone' && after === null
      ? ['The log will say when the lease expired, once an instance takes it.']
      : []),
    ...(after !== null && after.overlapMs > 0
      ? [
          `By the times in the log, ${name(after.holder)} had it ${exactly(after.overlapMs)} before ${name(before?.holder ?? '?')} had ended. By their fences, ${name(after.holder)} came second. Either ${name(before?.holder ?? '?')} logged its end late, or their clocks differ: Holdfast has not measured that.`,
        ]
      : []),
    ...(until !== null && taking !== null && taking.how !== 'handover' && taking.from !== null
      ? [`All times are by the clock of ${name(taking.by)}, the new owner.`]
      : []),
  ];
}

const LOSSES: Readonly<Record<string, string>> = {
  expired: 'its lease expired',
  taken_over: 'the store names another owner',
  revoked: 'an operator revoked it',
  max_hold: 'it held its lease for as long as it may (maxHold)',
  unsuitable: 'the store can no longer keep leases safe',
};

/** Why a holder lost its lease; a reason that is not known as it is. */
export function lossText(why: string | null): string {
  return (
    (why !== null && Object.hasOwn(LOSSES, why) ? LOSSES[why] : why) ?? 'for an unknown reason'
  );
}

function because(reason: unknown): string {
  return typeof reason === 'string' && reason !== '' ? ` (${reason})` : '';
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '?';
}
