import { KeyForeignError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { once } from '../core/once.ts';

/** Tells, once, of what another program has put where something of ours should be, for those who go on without it. Throws any other error. */
export function skipForeign(events: Emitter, error: unknown): void {
  if (!(error instanceof KeyForeignError)) throw error;
  const { key, found } = error;
  once(events, key, () => events.emit('store.unreadable', { key, found }));
}
