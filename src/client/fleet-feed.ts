/**
 * A fleet as it changes: a picture, then what is otherwise. Who is cut off gets a new picture when it comes back; nothing has to be
 * remembered for it in between.
 */
import { sleepOn } from '../core/sleep.ts';
import { unexpectedAnswer } from './api-error.ts';
import { backoffMs } from './backoff.ts';
import { mayPass, waitAdvisedMs } from './calls.ts';
import type { ClientParts } from './exchange.ts';
import type {
  ApiMember,
  ApiTarget,
  FleetChange,
  FleetPicture,
  TargetRow,
} from './operating-messages.ts';
import { DEFAULT_RETRY_MS, frames } from './stream.ts';

/** A fleet of a hundred thousand targets fits. */
const LONGEST_FRAME = 16_777_216;

export type FollowedFleet =
  | { readonly kind: 'picture'; readonly picture: FleetPicture }
  | { readonly kind: 'change'; readonly change: FleetChange }
  /** The server can not ask the store for now; and can again. */
  | { readonly kind: 'stalled' }
  | { readonly kind: 'resumed' }
  /** The server can not be reached; it is tried again, and a picture comes when it can. */
  | { readonly kind: 'lost' };

export async function* fleetFeed(
  parts: ClientParts,
  signal: AbortSignal | undefined,
): AsyncGenerator<FollowedFleet, void, undefined> {
  const { clock, random } = parts;
  const place = { after: undefined, retryMs: DEFAULT_RETRY_MS };
  const wish = { path: () => '/api/v3/fleet/live', place, signal, longestFrame: LONGEST_FRAME };
  let failures = 0;
  while (!signal?.aborted) {
    let pauseMs = 0;
    try {
      for await (const { event, data } of frames(parts, wish)) {
        failures = 0;
        const one = readFrame(event, data);
        if (one !== null) yield one;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!mayPass(error)) throw error;
      pauseMs = waitAdvisedMs(error);
    }
    // What a picture says is not to be gone on from: it is told anew.
    place.after = undefined;
    if (failures === 0) yield { kind: 'lost' };
    failures += 1;
    pauseMs += backoffMs(failures, random, place.retryMs);
    await sleepOn(clock, pauseMs, signal).catch(() => {});
  }
}

/** As it goes over the wire. */
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
  const wire = parsed(data);
  return event === 'picture'
    ? { kind: 'picture', picture: pictureOf(wire) }
    : { kind: 'change', change: changeOf(wire) };
}

function parsed(data: string): WireFleet {
  try {
    return JSON.parse(data) as WireFleet;
  } catch {
    throw unexpectedAnswer(200);
  }
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
