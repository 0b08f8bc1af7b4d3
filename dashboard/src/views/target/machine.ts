/**
 * The states of a lease, and which of them a target or a lease is in. Only the store is asked: that a holder is uncertain can only be guessed
 * from late renewals.
 */
import type { TargetReason } from '../../../../src/client/operating-messages.ts';

export type StateName = 'free' | 'held' | 'uncertain' | 'lost' | 'moving' | 'barred' | 'paused';

export interface State {
  readonly name: string;
  readonly means: string;
  /** The middle of its box in the drawing. */
  readonly at: readonly [x: number, y: number];
}

export const MACHINE: Readonly<Record<StateName, State>> = {
  free: {
    name: 'Free',
    at: [80, 56],
    means: 'No process holds it. The store grants it to the first that asks.',
  },
  held: {
    name: 'Held',
    at: [280, 56],
    means: 'Its holder works, and renews it in time.',
  },
  uncertain: {
    name: 'Uncertain',
    at: [480, 56],
    means:
      'A renewal is late or has failed. Its holder starts no new work. No other process can take it yet.',
  },
  lost: {
    name: 'Lost',
    at: [680, 56],
    means: 'Its holder is gone, or has stopped at its deadline. The lease is about to expire.',
  },
  moving: {
    name: 'Handing over',
    at: [280, 156],
    means: 'Its holder finishes its work. Then the store makes another process the holder.',
  },
  barred: {
    name: 'Blocked',
    at: [80, 156],
    means:
      'No process can take it for a while: an operator revoked it, the store is in quarantine, or its key has something else.',
  },
  paused: {
    name: 'Paused',
    at: [480, 156],
    means: 'An operator paused it. No instance takes it until an operator resumes it.',
  },
};

export interface Step {
  readonly from: StateName;
  readonly to: StateName;
  readonly why: string;
}

export const STEPS: readonly Step[] = [
  { from: 'free', to: 'held', why: 'granted' },
  { from: 'held', to: 'uncertain', why: 'no renewal' },
  { from: 'uncertain', to: 'held', why: 'renewed' },
  { from: 'uncertain', to: 'lost', why: 'deadline' },
  { from: 'lost', to: 'free', why: 'expired' },
  { from: 'held', to: 'moving', why: 'transfer' },
  { from: 'moving', to: 'held', why: 'claimed' },
  { from: 'held', to: 'barred', why: 'revoked' },
  { from: 'barred', to: 'free', why: 'over' },
  { from: 'held', to: 'paused', why: 'paused' },
  { from: 'paused', to: 'free', why: 'resumed' },
];

const OF_REASON: Readonly<Record<TargetReason, StateName>> = {
  kept: 'held',
  foreign: 'held',
  moving: 'moving',
  late: 'uncertain',
  expiring: 'lost',
  free: 'free',
  unplaced: 'free',
  quarantine: 'barred',
  revoked: 'barred',
  garbage: 'barred',
  unsettled: 'barred',
  paused: 'paused',
};

export function stateOf(reason: TargetReason): StateName {
  return OF_REASON[reason];
}

/** A lease that is no target is never paused. */
export const LEASE_STATES: readonly StateName[] = [
  ...(['free', 'held', 'uncertain', 'lost', 'moving', 'barred'] as const),
];

export const TARGET_STATES: readonly StateName[] = [...LEASE_STATES, 'paused'];

/** In words, for screen readers. */
export function wordsOf(current: StateName): string {
  const { name, means } = MACHINE[current];
  return `It is ${name.toLowerCase()}. ${means} Possible next states: ${nextOf(current)}.`;
}

/** `held (granted), barred (revoked)`; those among `states` only. */
export function nextOf(current: StateName, states: readonly StateName[] = TARGET_STATES): string {
  return STEPS.filter(({ from, to }) => from === current && states.includes(to))
    .map(({ to, why }) => `${MACHINE[to].name.toLowerCase()} (${why})`)
    .join(', ');
}
