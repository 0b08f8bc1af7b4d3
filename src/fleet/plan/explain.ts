import type { FleetTarget, Obstacle } from '../view/fleet-target.ts';
import type { FleetMember } from '../view/member.ts';
import { DEFAULT_COMMAND, hasCommand, rankOf } from './plan.ts';

/** Why a target is where it is. */
export interface Explanation {
  readonly target: string;
  /** The owner according to the store; null for none. */
  readonly owner: string | null;
  /** The member that should own it; null for none. */
  readonly planned: string | null;
  /**
   * The member that an operator has moved it to; null for none. Without effect while that member
   * drains, or after it is gone.
   */
  readonly pinned: string | null;
  /** How long until the owner's lease, or the bar on a free target, expires. */
  readonly expiresInMs: number;
  readonly reason: 'kept' | 'moving' | 'foreign' | 'expiring' | 'free' | 'unplaced' | Obstacle;
  /** The same in words. */
  readonly text: string;
}

/** The fleet that an explanation refers to. */
export interface ExplainedFleet {
  readonly members: readonly FleetMember[];
  /** Per member of `members`. */
  readonly quotas: readonly number[];
  /** How many targets each owner has. */
  readonly loads: ReadonlyMap<string, number>;
  readonly nowMs: number;
}

interface Facts extends ExplainedFleet {
  readonly owner: string | null;
  readonly planned: string | null;
  readonly pinned: string | null;
  readonly command: string | undefined;
  readonly expiresInMs: number;
  /** The rank of the planned owner for the target: 0 for its first choice. */
  readonly rank: number;
}

export function explain(entry: FleetTarget, fleet: ExplainedFleet): Explanation {
  const { id: target, owner, planned, pinned, command, obstacle, lease, expiresAtMs } = entry;
  const plannedMember = fleet.members.find(({ id }) => id === planned);
  const expiresInMs = lease?.remainingMs() ?? Math.max(0, expiresAtMs - fleet.nowMs);
  const rank = plannedMember === undefined ? 0 : rankOf(plannedMember, entry, fleet.members);
  const facts: Facts = { ...fleet, owner, planned, pinned, command, expiresInMs, rank };
  const reason = reasonFor(
    { owner, planned, obstacle },
    fleet.members.find(({ id }) => id === owner),
  );
  const text = `${wordsFor(reason, facts)}.${uselessPin(facts)}`;
  return { target, owner, planned, pinned, expiresInMs, reason, text };
}

export function loadsOf(entries: Iterable<FleetTarget>): Map<string, number> {
  const loads = new Map<string, number>();
  for (const { owner } of entries)
    if (owner !== null) loads.set(owner, (loads.get(owner) ?? 0) + 1);
  return loads;
}

/** The reason without the words. `member` is the owner of the target, if it is a member. */
export function reasonFor(
  { owner, planned, obstacle }: Pick<FleetTarget, 'owner' | 'planned' | 'obstacle'>,
  member: FleetMember | undefined,
): Explanation['reason'] {
  if (owner === null) return obstacle ?? (planned === null ? 'unplaced' : 'free');
  if (member === undefined) return 'expiring';
  if (member.isForeign) return 'foreign';
  return owner === planned ? 'kept' : 'moving';
}

function wordsFor(reason: Explanation['reason'], facts: Facts): string {
  const { owner, planned, pinned, expiresInMs } = facts;
  const isPinned = pinned !== null && pinned === planned;
  const left = Number.isFinite(expiresInMs) ? `${Math.ceil(expiresInMs)} ms` : 'ever';
  const next =
    planned === null ? 'no instance may take it' : `${planned} takes it, ${choice(facts)}`;
  const words: Record<Explanation['reason'], () => string> = {
    kept: () =>
      isPinned
        ? `${owner} keeps this target, because an operator moved it there`
        : `${owner} keeps this target: it owns ${load(owner, facts)}`,
    moving: () => {
      if (isPinned)
        return `${owner} owns this target and hands it to ${planned}, because an operator moved it there`;
      const to = planned === null ? 'no instance asks for it' : `${planned} gets it when it asks`;
      return `${owner} owns ${load(owner, facts)} and gives this one up; ${to}`;
    },
    foreign: () => `${owner}, a non-Holdfast program, holds it, and keeps it`,
    expiring: () => `${owner} holds it but has no heartbeat; within ${left} ${next}`,
    free: () => `no instance holds it; ${next}`,
    unplaced: () => `no instance holds it, and none can take it: ${whyUnplaced(facts)}`,
    quarantine: () =>
      `the store may have lost leases and makes no new grants for ${left}; then ${next}`,
    revoked: () => `it was revoked, and stays blocked for ${left}; then ${next}`,
    garbage: () => 'its key holds something that is no lease: inspect it, and remove it',
    unsettled: () =>
      'its earlier work here was told to stop and has not; until it has, this process does not take it',
  };
  return words[reason]();
}

function whyUnplaced({ members, command = DEFAULT_COMMAND }: Facts): string {
  const running = members.filter(({ isForeign, isDraining }) => !isForeign && !isDraining);
  if (running.length === 0) return 'no instance runs that is not draining';
  if (command === DEFAULT_COMMAND)
    return 'it names no command, and every instance runs named commands only (runner.commands)';
  return `no instance has its command '${command}'. Declare it as runner.commands.${command}, or correct its name`;
}

function load(owner: string | null, { members, quotas, loads }: Facts): string {
  const quota = quotas[members.findIndex(({ id }) => id === owner)] ?? 0;
  const owned = loads.get(owner ?? '') ?? 0;
  return `${owned} of its share of ${quota}`;
}

/** A pin has no effect where its member cannot have the target. */
function uselessPin(facts: Facts): string {
  const { pinned, planned, members } = facts;
  if (pinned === null || pinned === planned) return '';
  const member = members.find(({ id }) => id === pinned);
  if (member === undefined) return ` An operator has moved it to ${pinned}, which is gone.`;
  const isAble = hasCommand(member, facts);
  const why = member.isDraining ? ', which is draining' : ', which does not have its command';
  if (isAble && !member.isDraining) return ` An operator has moved it to ${pinned}.`;
  return ` An operator has moved it to ${pinned}${why}.`;
}

function choice({ rank, pinned, planned }: Facts): string {
  if (pinned !== null && pinned === planned) return 'because an operator has moved it there';
  return rank === 0 ? 'its first choice' : `its choice number ${rank + 1}, for an even share`;
}
