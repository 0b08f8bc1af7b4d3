import type { Clock } from '../../../core/clock.ts';
import { StoreUnreachableError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import {
  type Access,
  announcedDialer,
  briefly,
  type Dialer,
  dialBriefly,
  type Link,
  type TimeLimit,
} from '../client/link.ts';
import { createMarker, type StoreContext } from '../quarantine.ts';
import type { RunScript } from '../scripts.ts';
import { type PrimaryServer, readFacts } from './primary-server.ts';
import { RedirectionError, replyOf } from './redirection.ts';
import { explained } from './slot-map.ts';

/** Between two attempts at a Cluster that is changing. */
const PAUSE_MS = 25;

/** A Cluster whose marker is to be made. */
interface NewCluster {
  readonly name: string;
  readonly primaries: readonly PrimaryServer[];
  /** The address of the server that has the marker. */
  readonly owner: string;
  readonly access: Access;
}

/**
 * Enters all servers of a Cluster in its marker, before the first connection to any of them. So
 * each connection finds a marker that knows its server, however many clients open a new Cluster at
 * once.
 */
export function createClusterMarker(
  rt: BaseRuntime,
  context: StoreContext,
  cluster: NewCluster,
  limit: TimeLimit,
): Promise<void> {
  const { name, primaries, owner, access } = cluster;
  const { timeoutMs } = limit;
  return briefly(rt.clock, limit, async (attempt, isLate) => {
    const links = new Map<string, Link>();
    const inspections = primaries.map(async ({ address, name: server }) => {
      try {
        const link = await dialBriefly(announcedDialer(server, address, access), attempt);
        links.set(address, link);
        return await readFacts(link, server, rt.clock);
      } catch (error) {
        throw explained(isLate() ? `no answer within ${timeoutMs} ms` : error, name, address);
      }
    });
    const servers = await Promise.all(inspections);
    const run = markerScripts(rt.clock, cluster, links, attempt);
    await createMarker(rt, run, context, { store: name, servers }).catch((error: unknown) => {
      throw explained(error, name, owner);
    });
  });
}

/** Runs a script on the server that has its key, following redirections. */
function markerScripts(
  clock: Clock,
  { owner, name: store, access }: NewCluster,
  links: ReadonlyMap<string, Link>,
  limit: TimeLimit,
): RunScript {
  return async (...script) => {
    let at = owner;
    for (let isAsking = false; ; ) {
      const link = links.get(at) ?? links.get(owner);
      if (link === undefined) throw new Error('no server has the slot of the marker');
      if (isAsking) void link.send(['ASKING']).catch(() => {});
      const reply = await replyOf(evaluate(link, ...script));
      if (!(reply instanceof RedirectionError)) {
        if (reply instanceof Error) throw reply;
        return reply;
      }
      const address = reply.addressFrom(at);
      // A server without slots is on no map, so it has none of the links.
      if (reply.isAsk && !links.has(address))
        return evaluateAhead(clock, announcedDialer(store, address, access), script, limit);
      await clock.sleep(PAUSE_MS, limit.signal).catch(() => {
        throw new StoreUnreachableError({ store, operation: 'connect', why: reply.meaning });
      });
      isAsking = reply.isAsk;
      at = reply.isAsk || reply.isMoved ? address : owner;
    }
  };
}

/**
 * Runs a script on a server to which a key has moved ahead of its slot. It uses a connection of its
 * own: the other one to that server may wait for this very answer.
 */
export function evaluateAhead(
  clock: Clock,
  server: Dialer,
  script: Parameters<RunScript>,
  limit: TimeLimit,
): Promise<unknown> {
  return briefly(clock, limit, async (attempt) => {
    const link = await dialBriefly(server, attempt);
    void link.send(['ASKING']).catch(() => {});
    return evaluate(link, ...script);
  });
}

export function evaluate(link: Link, ...script: Parameters<RunScript>): Promise<unknown> {
  return link.send(evalCommand(...script));
}

export function evalCommand(...[{ source }, keys, args]: Parameters<RunScript>): string[] {
  return ['EVAL', source, String(keys.length), ...keys, ...args];
}
