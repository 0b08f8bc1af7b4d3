import type { ApiEvent } from '../../../src/client/messages.ts';

/**
 * The latest first, by the clocks of the instances that wrote them. The log is in the order of writing, and instances write in batches: two
 * entries of two instances can be the wrong way round. Entries of the same millisecond stay as they are.
 */
export function latestFirst(events: readonly ApiEvent[]): readonly ApiEvent[] {
  return [...events].sort((a, b) => b.at - a.at);
}
