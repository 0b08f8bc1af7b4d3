/** The target under the pointer, or at the keyboard's cursor. */
import { signal } from '@preact/signals';
import { go, hrefOf } from '../../router.ts';

/** For how long it is shown that a target has moved, and where it came from. */
export const MOVE_SHOWN_MS = 6_000;

export const pointed = signal<string | null>(null);
/** The same, but only where it is to be said aloud: not for each thing that a pointer passes over. */
export const spoken = signal<string | null>(null);

export function openTarget(id: string): void {
  go(hrefOf('targets', id));
}
