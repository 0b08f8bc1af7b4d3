/** For views that follow what happens: what has come since they last looked. */
import { useEffect, useRef } from 'preact/hooks';
import type { ApiEvent } from '../../../src/client/messages.ts';
import { events, eventVersion } from './events.ts';
import { since } from './since.ts';

/**
 * Calls `on` with the events that come while the view is there and whose names begin so; those that come within `gatherMs` together, where
 * what follows from them costs something.
 */
export function useArrivals(
  names: readonly string[],
  on: (come: readonly ApiEvent[]) => void,
  gatherMs = 0,
): void {
  const latest = useRef(on);
  latest.current = on;
  useEffect(() => {
    let last = events.at(-1);
    let waiting: ApiEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tell = () => {
      const come = waiting;
      waiting = [];
      timer = undefined;
      latest.current(come);
    };
    const unsubscribe = eventVersion.subscribe(() => {
      for (const one of since(events, last))
        if (names.some((name) => one.event === name || one.event.startsWith(`${name}.`)))
          waiting.push(one);
      last = events.at(-1);
      if (waiting.length > 0) timer ??= setTimeout(tell, gatherMs);
    });
    return () => {
      unsubscribe();
      clearTimeout(timer);
    };
  }, []);
}
