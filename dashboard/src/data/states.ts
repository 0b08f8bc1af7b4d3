/** The ways a target can be, each with a word, a letter and a sentence: none of them is told by colour alone. */
import type { ApiTarget, TargetReason } from '../../../src/client/operating-messages.ts';

export interface TargetState {
  /** Short enough for a cell. */
  readonly word: string;
  /** For cells that have no room for a word; '' where all is as it should be. */
  readonly letter: string;
  /** `doubt`: its owner may lose it, or nobody can be sure of it. */
  readonly kind: 'well' | 'busy' | 'doubt' | 'paused';
  readonly why: string;
}

export const STATES: Readonly<Record<TargetReason, TargetState>> = {
  kept: { word: 'kept', letter: '', kind: 'well', why: 'its owner renews it in good time' },
  moving: { word: 'moving', letter: '→', kind: 'busy', why: 'it changes hands' },
  late: {
    ...{ word: 'late', letter: 'L', kind: 'doubt' },
    why: 'its owner lives, but has not renewed it when it should have',
  },
  expiring: {
    ...{ word: 'expiring', letter: 'E', kind: 'doubt' },
    why: 'its owner shows no sign of life: who comes after it waits for the lease to end',
  },
  foreign: {
    ...{ word: 'foreign', letter: 'F', kind: 'well' },
    why: 'an instance of another make has it',
  },
  free: { word: 'unowned', letter: 'U', kind: 'doubt', why: 'nobody has it yet' },
  unplaced: {
    word: 'unplaced',
    letter: 'X',
    kind: 'doubt',
    why: 'there is nobody who may have it',
  },
  quarantine: {
    ...{ word: 'quarantine', letter: 'Q', kind: 'doubt' },
    why: 'the store has lost its memory: nothing is granted until all old leases have run out',
  },
  revoked: {
    ...{ word: 'revoked', letter: 'R', kind: 'doubt' },
    why: 'somebody took it away: nobody may have it until the old owner has surely stopped',
  },
  garbage: {
    ...{ word: 'unreadable', letter: 'G', kind: 'doubt' },
    why: 'something that is no lease stands where its lease should be',
  },
  unsettled: {
    ...{ word: 'unsettled', letter: '?', kind: 'doubt' },
    why: 'the instances do not agree yet on who is there',
  },
  paused: { word: 'paused', letter: 'P', kind: 'paused', why: 'nobody should poll it for now' },
};

/** Where the map has it: with its owner, on top, where everybody looks, or aside. */
export function placeOnMap({ owner, reason }: ApiTarget): 'owner' | 'attention' | 'paused' {
  const { kind } = STATES[reason];
  if (kind === 'paused') return 'paused';
  return owner === null || kind === 'doubt' ? 'attention' : 'owner';
}

export function isNotPreferred({ owner, preferred }: ApiTarget): boolean {
  return owner !== null && preferred !== null && owner !== preferred;
}

/** All that is to be said of it in a few words, for those who hear it and those who point at it. */
export function wordsFor(target: ApiTarget): readonly string[] {
  const { owner, reason, pinned } = target;
  const isNobodys = owner === null && STATES[reason].kind !== 'doubt';
  return [
    ...(isNobodys && reason !== 'paused' ? ['unowned'] : []),
    STATES[reason].word,
    ...(isNotPreferred(target) ? ['not preferred'] : []),
    ...(pinned === null ? [] : ['pinned']),
  ];
}
