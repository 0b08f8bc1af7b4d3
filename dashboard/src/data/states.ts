/** The states of a target, each with a word, a letter and a sentence, so that none of them is told by colour alone. */
import type { ApiTarget, TargetReason } from '../../../src/client/operating-messages.ts';

export interface TargetState {
  /** Short enough for a cell. */
  readonly word: string;
  /** For cells that have no room for a word; '' if all is well. */
  readonly letter: string;
  /** `doubt`: no instance works on it, or its owner may lose it. */
  readonly kind: 'well' | 'busy' | 'doubt' | 'paused';
  /** Of those in doubt: `warn` if its owner is alive, `bad` if no live instance works on it. */
  readonly level?: 'warn' | 'bad';
  readonly why: string;
}

export const STATES: Readonly<Record<TargetReason, TargetState>> = {
  kept: { word: 'owned', letter: '', kind: 'well', why: 'Its owner renews its lease in time.' },
  moving: {
    word: 'moving',
    letter: 'M',
    kind: 'busy',
    why: 'One instance is handing it to another.',
  },
  late: {
    word: 'late',
    letter: 'L',
    kind: 'doubt',
    level: 'warn',
    why: 'Its owner is alive, but has not renewed its lease in time.',
  },
  expiring: {
    word: 'expiring',
    letter: 'E',
    kind: 'doubt',
    level: 'bad',
    why: 'Its owner shows no sign of life. The next owner waits for the lease to expire.',
  },
  foreign: {
    word: 'foreign',
    letter: 'F',
    kind: 'well',
    why: 'A non-Holdfast program owns it.',
  },
  free: {
    word: 'unowned',
    letter: 'U',
    kind: 'doubt',
    level: 'bad',
    why: 'No instance owns it yet.',
  },
  unplaced: {
    word: 'unplaced',
    letter: 'X',
    kind: 'doubt',
    level: 'bad',
    why: 'No instance is allowed to own it.',
  },
  quarantine: {
    word: 'quarantine',
    letter: 'Q',
    kind: 'doubt',
    level: 'bad',
    why: 'The store may have lost data. It grants nothing until all old leases have expired.',
  },
  revoked: {
    word: 'revoked',
    letter: 'R',
    kind: 'doubt',
    level: 'bad',
    why: 'An operator revoked its lease. It stays free until its former owner has stopped.',
  },
  garbage: {
    word: 'unreadable',
    letter: 'G',
    kind: 'doubt',
    level: 'bad',
    why: 'The store has something else in place of its lease.',
  },
  unsettled: {
    word: 'unsettled',
    letter: '?',
    kind: 'doubt',
    level: 'warn',
    why: 'The instances do not agree yet on who belongs to the fleet.',
  },
  paused: {
    word: 'paused',
    letter: 'P',
    kind: 'paused',
    why: 'An operator paused it. No instance polls it.',
  },
};

/** `bad` for a target that no instance owns, whatever else is known of it; undefined if all is well. */
export function levelOf({ owner, reason }: ApiTarget): 'warn' | 'bad' | undefined {
  const { kind, level } = STATES[reason];
  return owner === null && kind !== 'paused' ? 'bad' : level;
}

/** Which lane of the map has it: its owner's, the one for what needs attention, or the paused one. */
export function placeOnMap({ owner, reason }: ApiTarget): 'owner' | 'attention' | 'paused' {
  const { kind } = STATES[reason];
  if (kind === 'paused') return 'paused';
  return owner === null || kind === 'doubt' ? 'attention' : 'owner';
}

export function isNotPreferred({ owner, preferred }: ApiTarget): boolean {
  return owner !== null && preferred !== null && owner !== preferred;
}

/** Everything about it in a few words, for screen readers and tooltips. */
export function wordsFor(target: ApiTarget): readonly string[] {
  const { owner, reason, pinned } = target;
  const isUnowned = owner === null && STATES[reason].kind !== 'doubt';
  return [
    ...(isUnowned && reason !== 'paused' ? ['unowned'] : []),
    STATES[reason].word,
    ...(isNotPreferred(target) ? ['not preferred'] : []),
    ...(pinned === null ? [] : ['pinned']),
  ];
}
