/**
 * The states a lease goes through, as the documentation tells it, and which of them a target or a lease is in. The store alone is asked: that a
 * holder has doubts can only be guessed from renewals that are late.
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
    ...{ name: 'Free', at: [80, 56] },
    means: 'Nobody has it. Whoever should asks for it, and the store grants it to one.',
  },
  held: {
    ...{ name: 'Held', at: [280, 56] },
    means: 'Its holder renews it in good time, and works.',
  },
  uncertain: {
    ...{ name: 'Uncertain', at: [480, 56] },
    means:
      'A renewal is late or has failed. Nobody else can have it yet; its holder begins nothing new.',
  },
  lost: {
    ...{ name: 'Lost', at: [680, 56] },
    means: 'Its holder is gone, or has stopped by itself at its deadline. The lease runs out.',
  },
  moving: {
    ...{ name: 'Handing over', at: [280, 156] },
    means: 'Its holder finishes what it does; the store then names the successor.',
  },
  barred: {
    ...{ name: 'Barred', at: [80, 156] },
    means:
      'Nobody can have it for a while: it was revoked, the store may have forgotten grants, or what lies there is no lease.',
  },
  paused: {
    ...{ name: 'Paused', at: [480, 156] },
    means: 'Nobody should have it, until it is resumed.',
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
  { from: 'lost', to: 'free', why: 'ran out' },
  { from: 'held', to: 'moving', why: 'asked for' },
  { from: 'moving', to: 'held', why: 'claimed' },
  { from: 'held', to: 'barred', why: 'revoked' },
  { from: 'barred', to: 'free', why: 'waited out' },
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

/** In words, for those who can not see the drawing. */
export function wordsOf(current: StateName): string {
  const { name, means } = MACHINE[current];
  return `It is ${name.toLowerCase()}. ${means} From here it goes on to: ${nextOf(current)}.`;
}

/** `held (granted), barred (revoked)`; those among `states` only. */
export function nextOf(current: StateName, states: readonly StateName[] = TARGET_STATES): string {
  return STEPS.filter(({ from, to }) => from === current && states.includes(to))
    .map(({ to, why }) => `${MACHINE[to].name.toLowerCase()} (${why})`)
    .join(', ');
}
