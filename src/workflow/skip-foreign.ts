import { KeyForeignError } from '../base/errors.ts';
import type { Emitter } from '../base/events.ts';
import { tellOnce } from '../base/told-once.ts';

/** Tells, once, of what another program has put where something of ours should be, for those who go on without it. Throws any other error. */
export function skipForeign(events: Emitter, error: unknown): void {
  if (!(error instanceof KeyForeignError)) throw error;
  const { key, found } = error;
  tellOnce(events, key, () => events.emit('store.unreadable', { key, found }));
}
