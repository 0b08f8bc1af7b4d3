/**
 * Events on channels of `node:diagnostics_channel`, for programs that monitor a process without
 * access to its Holdfast. `docs/tracing.md` has an example.
 */
import { type Channel, channel } from 'node:diagnostics_channel';
import type { EventName, EventPublisher, Events } from '../core/events.ts';

/** What a subscriber of `holdfast:lease.lost` and the other channels receives. */
export interface DiagnosticsMessage<N extends EventName = EventName> {
  readonly event: N;
  /** The instance whose event it is: a process may have several. */
  readonly instance: string;
  readonly facts: Events[N];
}

const PREFIX = 'holdfast:';

/** Publishes events of an instance. Without subscribers it costs a look in a map. */
export function diagnosticsPublisher(instance: string): EventPublisher {
  const channels = new Map<EventName, Channel>();
  const channelOf = (name: EventName) => {
    const known = channels.get(name) ?? channel(PREFIX + name);
    channels.set(name, known);
    return known;
  };
  return {
    wants: (name) => channelOf(name).hasSubscribers,
    publish(name, facts) {
      const message: DiagnosticsMessage = { event: name, instance, facts };
      channelOf(name).publish(message);
    },
  };
}
