import type { Clock } from '../../../core/clock.ts';
import { StoreUnreachableError } from '../../../core/errors.ts';
import { type Attempt, type Credentials, dialBriefly, type Link } from '../client/link.ts';
import { createMarker } from '../quarantine.ts';
import type { RunScript } from '../scripts.ts';
import { lookAt, type Primary, type PrimaryContext } from './primary.ts';
import { Redirection, replyOf } from './redirection.ts';
import { explained, readAddress } from './slot-map.ts';

/** Between two attempts at a Cluster that is changing. */
const PAUSE_MS = 25;

interface FoundingParts
  extends Pick<
    PrimaryContext,
    'marker' | 'maxTtls' | 'mayCreate' | 'remembered' | 'random' | 'clock'
  > {
  readonly name: string;
  readonly primaries: readonly Primary[];
  /** The address of the server that has the marker. */
  readonly owner: string;
  readonly credentials: Credentials;
}

/**
 * Shows the marker of a Cluster all of its servers, before the first connection to any of them: so that each of these
 * finds a marker that knows its server, however many clients open a new Cluster at once.
 */
export async function createClusterMarker(
  { name, primaries, owner, credentials, ...context }: FoundingParts,
  timeoutMs: number,
  closing: AbortSignal,
): Promise<void> {
  const { clock } = context;
  const over = new AbortController();
  const timer = clock.after(timeoutMs, () => over.abort());
  const signal = AbortSignal.any([closing, over.signal]);
  const attempt: Attempt = { timeoutMs, signal, onEnd: () => {} };
  const links = new Map<string, Link>();
  const looks = primaries.map(async ({ address, name: server }) => {
    try {
      const link = await dialBriefly(readAddress(address), credentials, attempt);
      links.set(address, link);
      return await lookAt(link, server, clock);
    } catch (error) {
      const isLate = over.signal.aborted;
      throw explained(isLate ? `no answer within ${timeoutMs} ms` : error, name, address);
    }
  });
  try {
    const servers = await Promise.all(looks);
    const run = follower(links, { owner, name, credentials, clock, timeoutMs }, signal);
    await createMarker(run, { ...context, store: name }, servers).catch((error: unknown) => {
      throw explained(error, name, owner);
    });
  } finally {
    timer.cancel();
    // Ends what is still being dialled, too.
    over.abort();
  }
}

/** Runs a script wherever the servers say that its key is. */
function follower(
  links: ReadonlyMap<string, Link>,
  parts: Pick<FoundingParts, 'owner' | 'name' | 'credentials' | 'clock'> & { timeoutMs: number },
  signal: AbortSignal,
): RunScript {
  const { owner, name: store, credentials, clock, timeoutMs } = parts;
  return async (...script) => {
    let at = owner;
    for (let isAsking = false; ; ) {
      const link = links.get(at) ?? links.get(owner);
      if (link === undefined) throw new Error('nobody has the slot of the marker');
      if (isAsking) void link.send(['ASKING']).catch(() => {});
      const reply = await replyOf(evaluate(link, ...script));
      if (reply instanceof Error) throw reply;
      if (!(reply instanceof Redirection)) return reply;
      const address = reply.addressFrom(at);
      // A server without slots is on no map, and so among none of the links.
      if (reply.isAsk && !links.has(address))
        return evaluateAhead({ address, credentials }, script, clock, timeoutMs, signal);
      await clock.sleep(PAUSE_MS, signal).catch(() => {
        throw new StoreUnreachableError({ store, operation: 'connect', why: reply.meaning });
      });
      isAsking = reply.isAsk;
      at = reply.isAsk || reply.isMoved ? address : owner;
    }
  };
}

/** Where a key has gone ahead of its slot. Over a connection of its own: the other one there may wait for this very answer. */
export async function evaluateAhead(
  at: { address: string; credentials: Credentials },
  script: Parameters<RunScript>,
  clock: Clock,
  timeoutMs: number,
  closing: AbortSignal,
): Promise<unknown> {
  const over = new AbortController();
  const timer = clock.after(timeoutMs, () => over.abort());
  const signal = AbortSignal.any([closing, over.signal]);
  const attempt: Attempt = { timeoutMs, signal, onEnd: () => {} };
  try {
    const link = await dialBriefly(readAddress(at.address), at.credentials, attempt);
    void link.send(['ASKING']).catch(() => {});
    return await evaluate(link, ...script);
  } finally {
    timer.cancel();
    over.abort();
  }
}

export function evaluate(
  link: Link,
  ...[script, keys, args]: Parameters<RunScript>
): Promise<unknown> {
  return link.send(['EVAL', script.source, String(keys.length), ...keys, ...args]);
}
