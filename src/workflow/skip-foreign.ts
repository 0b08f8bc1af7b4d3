import { KeyForeignError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { once } from '../core/once.ts';

/**
 * Reports a key that a non-Holdfast program has overwritten, once, so that its caller can skip it.
 * Rethrows any other error.
 */
export function skipForeign(events: Emitter, error: unknown): void {
  if (!(error instanceof KeyForeignError)) throw error;
  const { key, found } = error;
  once(events, key, () => events.emit('store.unreadable', { key, found }));
}
