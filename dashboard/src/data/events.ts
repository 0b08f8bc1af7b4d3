/** What happens, as it happens: the last few thousand events, for all views that show some. */
import { signal } from '@preact/signals';
import type { ApiEvent } from '../../../src/client/messages.ts';
import { client } from './access.ts';
import { followAgain } from './following.ts';

const MOST_KEPT = 5_000;
/** So many earlier events are loaded first. */
const FIRST_PAGE = 500;
/** Events that come within this time are shown together. */
const GATHER_MS = 50;

/** The oldest first. Changed in place: `eventVersion` says that something came. */
export const events: ApiEvent[] = [];
export const eventVersion = signal(0);
/** Positions behind which something is missing: the log had dropped it before it could be sent. */
export const gaps = new Set<string>();

/** Since when no events come, on the browser's monotonic clock; null while they do. */
export const feedLostAtMs = signal<number | null>(null);

/** Follows the log for as long as the dashboard is open, whatever the server answers in between. */
export async function followEvents(signal: AbortSignal): Promise<void> {
  await followAgain(signal, follow, () => tellConnection('lost'));
}

/** From the last event that the dashboard has; throws errors that do not pass automatically. */
async function follow(signal: AbortSignal): Promise<void> {
  if (events.length === 0) {
    const { events: past } = await client.history({ limit: FIRST_PAGE }, { signal });
    add([...past].reverse());
  }
  const after = events.at(-1)?.position;
  const from = after === undefined ? {} : { after };
  for await (const one of client.events({ signal, onConnection: tellConnection, ...from })) {
    if (one.kind === 'gap') gaps.add(events.at(-1)?.position ?? '');
    else add([one.event]);
  }
}

function tellConnection(state: 'connected' | 'lost'): void {
  if (state === 'connected') feedLostAtMs.value = null;
  else feedLostAtMs.value ??= performance.now();
}

function add(more: readonly ApiEvent[]): void {
  events.push(...more);
  if (events.length > MOST_KEPT) events.splice(0, events.length - MOST_KEPT);
  if (isTold) return;
  isTold = true;
  // Once per batch, not per event: hundreds may come in a second, and each would draw the view again.
  setTimeout(() => {
    isTold = false;
    eventVersion.value++;
  }, GATHER_MS);
}

let isTold = false;
