/** Which instances are restarts: an earlier instance of the same name ended before they started. */
import { computed, effect, signal, untracked } from '@preact/signals';
import { instancesOf } from '../../../src/telemetry/about.ts';
import { events, eventVersion } from './events.ts';
import { members } from './fleet.ts';
import { nameOf, startOf } from './palette.ts';
import { since } from './since.ts';

/** A restart is news for this long; the view of the instance says it for as long as the log knows. */
const NEWS_MS = 600_000;

/** Every instance id that the log or the fleet has named since the dashboard was opened, by name. */
const known = signal<ReadonlyMap<string, ReadonlySet<string>>>(new Map());

/** The id of the instance that this one has replaced; undefined if it is the first of its name, or the other still runs. */
export function predecessorOf(
  id: string,
  named: ReadonlyMap<string, ReadonlySet<string>>,
  running: ReadonlySet<string>,
): string | undefined {
  const startedAt = startOf(id);
  if (startedAt === null) return undefined;
  const earlier = [...(named.get(nameOf(id)) ?? [])].filter(
    (other) => !running.has(other) && (startOf(other) ?? startedAt) < startedAt,
  );
  return earlier.sort((a, b) => (startOf(a) ?? 0) - (startOf(b) ?? 0)).at(-1);
}

const running = computed(() => new Set(members.value.map(({ id }) => id)));

export function restartOf(id: string): string | undefined {
  return predecessorOf(id, known.value, running.value);
}

/** Whether a restart was minutes ago. `wallMs` is the server's time. */
export function isNewRestart(id: string, wallMs: number): boolean {
  const startedAt = startOf(id);
  return startedAt !== null && wallMs - startedAt < NEWS_MS;
}

function note(ids: readonly string[]): void {
  const fresh = ids.filter((id) => !known.peek().get(nameOf(id))?.has(id));
  if (fresh.length === 0) return;
  const all = new Map(known.peek());
  for (const id of fresh) all.set(nameOf(id), new Set([...(all.get(nameOf(id)) ?? []), id]));
  known.value = all;
}

let last: (typeof events)[number] | undefined;
effect(() => {
  eventVersion.value;
  untracked(() => {
    note(since(events, last).flatMap(instancesOf));
    last = events.at(-1);
  });
});
effect(() => {
  const ids = members.value.map(({ id }) => id);
  untracked(() => note(ids));
});
