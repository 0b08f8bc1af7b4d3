import { type Clock, timeLeft } from '../../../core/clock.ts';
import {
  HoldfastError,
  StoreUnreachableError,
  StoreUnsuitableError,
} from '../../../core/errors.ts';
import {
  type Access,
  briefly,
  type Credentials,
  dialBriefly,
  type Endpoint,
  endpointDialer,
  type TimeLimit,
} from '../client/link.ts';
import { reachedAt, readAddress } from '../client/link-options.ts';
import { isErrorReply, refused } from '../client/replies.ts';
import { SLOTS } from './slots.ts';

/** The time limit for one server's answer. */
const MAP_TIMEOUT_MS = 1_000;

/** The address of the primary of each slot. */
export type SlotMap = readonly (string | undefined)[];

interface Cluster extends Access {
  readonly name: string;
}

/**
 * Asks one server after the other, by its endpoint or by the address that it announces, each over a
 * connection of its own, until one has the map. A server that is cut off from most of the others
 * reports that the Cluster is not well, and its map is old: it is used only if no other server
 * answers.
 */
export async function readSlotMap(
  clock: Clock,
  { name, credentials, natMap }: Cluster,
  servers: readonly (Endpoint | string)[],
  { timeoutMs, signal }: TimeLimit,
): Promise<SlotMap> {
  const leftMs = timeLeft(clock, timeoutMs);
  let failure: Error = new StoreUnreachableError({
    store: name,
    operation: 'connect',
    why: 'no server',
  });
  let doubtful: SlotMap | null = null;
  for (const [i, server] of servers.entries()) {
    if (signal.aborted) break;
    const withinMs = Math.min(MAP_TIMEOUT_MS, leftMs() / (servers.length - i));
    const own = typeof server === 'string' ? readAddress(server) : server;
    try {
      const at = typeof server === 'string' ? reachedAt(server, natMap) : server;
      const limit = { timeoutMs: withinMs, signal };
      const { map, isWell } = await readMapFrom(clock, { at, own }, credentials, limit);
      if (isWell) return map;
      if (doubtful === null || served(map) > served(doubtful)) doubtful = map;
    } catch (error) {
      failure = explained(error, name, `${own.host}:${own.port}`);
    }
  }
  if (doubtful !== null) return doubtful;
  throw failure;
}

async function readMapFrom(
  clock: Clock,
  { at, own }: { at: Endpoint; own: Endpoint },
  credentials: Credentials,
  limit: TimeLimit,
): Promise<{ map: SlotMap; isWell: boolean }> {
  return briefly(clock, limit, async (attempt, isLate) => {
    try {
      const link = await dialBriefly(endpointDialer(own.host, at, credentials), attempt);
      const asked = [link.send(['CLUSTER', 'INFO']), link.send(['CLUSTER', 'SLOTS'])];
      const [info, slots] = await Promise.all(asked);
      const isWell = String(info).includes('cluster_state:ok');
      return { map: readSlots(slots, own), isWell };
    } catch (error) {
      if (isLate()) throw new Error(`no answer within ${Math.round(limit.timeoutMs)} ms`);
      throw error;
    }
  });
}

/** How many slots have a server. */
function served(map: SlotMap): number {
  return map.filter((address) => address !== undefined).length;
}

/** `CLUSTER SLOTS`: per range the first slot, the last, and its servers, the primary first. */
function readSlots(reply: unknown, askedAt: Endpoint): SlotMap {
  const map = new Array<string | undefined>(SLOTS);
  for (const [first, last, primary] of reply as [number, number, [string | null, number]][]) {
    // A server that does not know its own address leaves it out: then it is the one that was asked.
    const address = `${primary[0] || askedAt.host}:${primary[1]}`;
    map.fill(address, first, last + 1);
  }
  return map;
}

/** Why a server of the Cluster did not answer. */
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
