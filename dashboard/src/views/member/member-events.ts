/** The events of an instance: those in the log, and those that come while the dashboard is open. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { ApiEvent } from '../../../../src/client/messages.ts';
import { instancesOf } from '../../../../src/telemetry/about.ts';
import { client, messageOf } from '../../data/access.ts';
import { events, eventVersion } from '../../data/events.ts';

const PAST = 500;

export interface MemberEvents {
  /** The latest first. */
  readonly events: readonly ApiEvent[];
  /** The log has been read. */
  readonly isWhole: boolean;
  readonly failure: string | null;
}

export function useMemberEvents(id: string): MemberEvents {
  const [past, setPast] = useState<readonly ApiEvent[] | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    const end = new AbortController();
    client.history({ member: id, limit: PAST }, { signal: end.signal }).then(
      (page) => setPast(page.events),
      (error: unknown) => {
        if (!end.signal.aborted) setFailure(messageOf(error));
      },
    );
    return () => end.abort();
  }, [id]);
  const version = eventVersion.value;
  const all = useMemo(() => joined(id, past ?? []), [id, past, version]);
  return { events: all, isWhole: past !== null, failure };
}

function joined(id: string, past: readonly ApiEvent[]): readonly ApiEvent[] {
  const known = new Set(past.map(({ position }) => position));
  const since = events.filter(
    (event) => !known.has(event.position) && instancesOf(event).includes(id),
  );
  return [...since.reverse(), ...past];
}
