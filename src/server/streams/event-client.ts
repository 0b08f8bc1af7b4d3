/**
 * One who watches events.
 *
 * **behind**: it is given pages of the log one after the other, each when it has read most of what came before.
 * **joined**: it has everything there is, and gets what comes when it comes. Dropped for not keeping up, it comes back and is behind again.
 * **ended**: as every stream does.
 */
import type { EventFilter } from './event-filter.ts';
import { StreamClient, type StreamClientParts } from './stream-client.ts';

export interface EventClientParts extends StreamClientParts {
  readonly filter: EventFilter;
  /** After how much of the log it is to begin; null: where the hub is. */
  readonly position: string | null;
}

export class EventClient extends StreamClient {
  readonly filter: EventFilter;
  /** How far it has been told of the log, until it joins. */
  position: string | null;
  #hasJoined = false;

  constructor(parts: EventClientParts) {
    super(parts);
    this.filter = parts.filter;
    this.position = parts.position;
  }

  get state(): 'behind' | 'joined' | 'ended' {
    if (this.isOver) return 'ended';
    return this.#hasJoined ? 'joined' : 'behind';
  }

  /** From now on it gets what comes when it comes. */
  join(): void {
    this.#hasJoined = true;
  }
}
