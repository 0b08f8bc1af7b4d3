import { type Clock, timeLeft } from '../../../core/clock.ts';
import {
  HoldfastError,
  StoreUnreachableError,
  StoreUnsuitableError,
} from '../../../core/errors.ts';
import { type Attempt, type Credentials, dialBriefly, type Endpoint } from '../client/link.ts';
import { isErrorReply, refused } from '../client/replies.ts';
import { SLOTS } from './slots.ts';

/** How long one server may take to say where the slots are. */
const ASK_MS = 1_000;

/** Who serves which slot: the address of a primary, by slot. */
export type SlotMap = readonly (string | undefined)[];

export interface SlotMapParts {
  readonly name: string;
  readonly credentials: Credentials;
  readonly clock: Clock;
}

/**
 * Asks one server after the other, each over a connection of its own, until one knows. One that is cut off from most of
 * the others says that the Cluster is not well, and its map is old: it is believed only if nobody says otherwise.
 */
export async function askForSlots(
  endpoints: readonly Endpoint[],
  parts: SlotMapParts,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<SlotMap> {
  const { name, clock } = parts;
  const leftMs = timeLeft(clock, timeoutMs);
  let failure: Error = new StoreUnreachableError({
    store: name,
    operation: 'connect',
    why: 'no server',
  });
  let doubtful: SlotMap | null = null;
  for (const [i, endpoint] of endpoints.entries()) {
    if (signal.aborted) break;
    const withinMs = Math.min(ASK_MS, leftMs() / (endpoints.length - i));
    try {
      const { map, isWell } = await askOne(endpoint, parts, withinMs, signal);
      if (isWell) return map;
      if (doubtful === null || served(map) > served(doubtful)) doubtful = map;
    } catch (error) {
      failure = explained(error, name, `${endpoint.host}:${endpoint.port}`);
    }
  }
  if (doubtful !== null) return doubtful;
  throw failure;
}

async function askOne(
  endpoint: Endpoint,
  { credentials, clock }: SlotMapParts,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ map: SlotMap; isWell: boolean }> {
  const over = new AbortController();
  let isLate = false;
  const timer = clock.after(timeoutMs, () => {
    isLate = true;
    over.abort();
  });
  // Not AbortSignal.any: of what it makes, a signal that lives long keeps something for ever.
  const end = () => over.abort();
  signal.addEventListener('abort', end);
  const attempt: Attempt = {
    timeoutMs: Math.ceil(timeoutMs),
    signal: over.signal,
    onEnd: () => {},
  };
  try {
    const link = await dialBriefly(endpoint, credentials, attempt);
    const asked = [link.send(['CLUSTER', 'INFO']), link.send(['CLUSTER', 'SLOTS'])];
    const [info, slots] = await Promise.all(asked);
    const isWell = String(info).includes('cluster_state:ok');
    return { map: readSlots(slots, endpoint), isWell };
  } catch (error) {
    if (isLate) throw new Error(`no answer within ${Math.round(timeoutMs)} ms`);
    throw error;
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', end);
    over.abort();
  }
}

/** How many slots have a server. */
function served(map: SlotMap): number {
  return map.filter((address) => address !== undefined).length;
}

/** `CLUSTER SLOTS`: per range the first slot, the last, and who serves it, the primary first. */
function readSlots(reply: unknown, askedAt: Endpoint): SlotMap {
  const map = new Array<string | undefined>(SLOTS);
  for (const [first, last, primary] of reply as [number, number, [string | null, number]][]) {
    // A server that does not know its own address leaves it out: it is the one that was asked.
    const address = `${primary[0] || askedAt.host}:${primary[1]}`;
    map.fill(address, first, last + 1);
  }
  return map;
}

export function readAddress(address: string): Endpoint {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}

/** Why a server of the Cluster could not be asked. */
export function explained(error: unknown, name: string, at: string): Error {
  const where = { store: name, operation: 'connect' };
  if (error instanceof HoldfastError) return error;
  if (isErrorReply(error) && error.message.includes('cluster support disabled')) {
    const problem = `${at} is a single server, not part of a Cluster. Open it as redis://${at}.`;
    return new StoreUnsuitableError({ store: name, problems: [problem] });
  }
  if (isErrorReply(error)) return refused(error.message, where);
  const why = error instanceof Error ? error.message || error.name : String(error);
  return new StoreUnreachableError({ ...where, why: `${at}: ${why}` }, { cause: error });
}
