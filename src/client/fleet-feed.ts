/**
 * Follows the fleet: a picture, then changes. After a reconnect the server sends a new picture, so
 * it need not remember clients.
 */
import { jsonOf } from './calls.ts';
import type {
  ApiMember,
  ApiTarget,
  FleetChange,
  FleetPicture,
  TargetRow,
} from './operating-messages.ts';
import type { ClientSettings } from './request.ts';
import { DEFAULT_RETRY_MS, follow } from './sse-stream.ts';

/** Enough for a hundred thousand targets. */
const MAX_FRAME = 16_777_216;

export type FollowedFleet =
  | { readonly kind: 'picture'; readonly picture: FleetPicture }
  | { readonly kind: 'change'; readonly change: FleetChange }
  /** The server cannot reach the store; then it can again. */
  | { readonly kind: 'stalled' }
  | { readonly kind: 'resumed' }
  /** The server is unreachable. The client retries, and a picture follows. */
  | { readonly kind: 'lost' };

export function fleetFeed(
  settings: ClientSettings,
  signal: AbortSignal | undefined,
): AsyncGenerator<FollowedFleet, void, undefined> {
  const progress = { after: undefined, retryMs: DEFAULT_RETRY_MS };
  const request = { path: () => '/api/v3/fleet/live', progress, signal, maxFrame: MAX_FRAME };
  return follow<FollowedFleet>(settings, request, {
    read: ({ event, data }) => readFrame(event, data),
    onLost(isNews) {
      // The server sends a new picture, so there is no position to continue from.
      progress.after = undefined;
      return isNews ? { kind: 'lost' } : null;
    },
  });
}

/** The JSON of the server. */
export interface WireFleet {
  readonly at: number;
  readonly roundTripMs: number;
  readonly members?: readonly ApiMember[];
  readonly names?: readonly string[];
  readonly targets?: readonly TargetRow[];
  readonly removed?: readonly string[];
}

function readFrame(event: string, data: string | null): FollowedFleet | null {
  if (event === 'stalled' || event === 'resumed') return { kind: event };
  if (data === null || (event !== 'picture' && event !== 'change')) return null;
  const wire = jsonOf(data, 200) as WireFleet;
  return event === 'picture'
    ? { kind: 'picture', picture: pictureOf(wire) }
    : { kind: 'change', change: changeOf(wire) };
}

export function pictureOf(wire: WireFleet): FleetPicture {
  const { at, roundTripMs, members = [] } = wire;
  return { at, roundTripMs, members, targets: targetsOf(wire) ?? [] };
}

function changeOf(wire: WireFleet): FleetChange {
  const { at, roundTripMs, members, removed } = wire;
  return { at, roundTripMs, members, removed, targets: targetsOf(wire) };
}

function targetsOf({ targets, names = [] }: WireFleet): ApiTarget[] | undefined {
  return targets?.map(([id, owner, planned, preferred, pinned, reason, expiresInMs]) => ({
    id,
    owner: names[owner] ?? null,
    planned: names[planned] ?? null,
    preferred: names[preferred] ?? null,
    pinned: names[pinned] ?? null,
    reason,
    expiresInMs,
  }));
}
