/**
 * Connects to allowed addresses only. A name is resolved once for each connection, and the
 * connection goes to the address that was checked: resolving again could give another. A kept
 * connection was checked before.
 */
import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { Agent as HttpAgent, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import { addressRefused, isAllowed, literalOf, type Zone } from './addresses.ts';

/** Connections to one host at a time; further requests wait for one of them. */
const MAX_PER_HOST = 64;
/** Idle connections to one host, how long they are kept, and to how many hosts. */
const MAX_IDLE = 16;
const IDLE_MS = 15_000;
const MAX_IDLE_HOSTS = 256;

/** As `dns.lookup` with `all`. */
export type Resolve = (
  host: string,
  options: { all: true; family?: number | 'IPv4' | 'IPv6'; hints?: number },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export class ConnectionPool {
  readonly #allow: ReadonlySet<Zone>;
  readonly #resolve: Resolve;
  readonly #kept: { http: HttpAgent; https: HttpsAgent };
  readonly #once: { http: HttpAgent; https: HttpsAgent };

  constructor(allow: ReadonlySet<Zone>, resolve: Resolve = systemLookup) {
    const few = { maxSockets: MAX_PER_HOST };
    const kept = { ...few, keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS };
    this.#allow = allow;
    this.#resolve = resolve;
    this.#kept = { http: new HttpAgent(kept), https: new HttpsAgent(kept) };
    this.#once = { http: new HttpAgent(few), https: new HttpsAgent(few) };
  }

  /**
   * The options of a request to this URL; throws if its address is not allowed. `isFresh`: over a
   * new connection. `assertHeld` is called again after the name is resolved, which may take long.
   */
  requestOptions(
    url: URL,
    { isFresh, assertHeld }: { isFresh: boolean; assertHeld: () => void },
  ): RequestOptions {
    const literal = literalOf(url);
    if (literal !== null && !isAllowed(literal, this.#allow))
      throw addressRefused(url.hostname, literal);
    const scheme = url.protocol === 'https:' ? 'https' : 'http';
    const kept = this.#kept[scheme];
    const isFull = Object.keys(kept.freeSockets).length >= MAX_IDLE_HOSTS;
    const lookup = this.#lookup(assertHeld);
    return { agent: isFresh || isFull ? this.#once[scheme] : kept, lookup };
  }

  close(): void {
    for (const agents of [this.#kept, this.#once]) {
      agents.http.destroy();
      agents.https.destroy();
    }
  }

  #lookup(assertHeld: () => void): LookupFunction {
    return (host, { family, hints, all }, callback) => {
      const options = {
        ...(family !== undefined && { family }),
        ...(hints !== undefined && { hints }),
      };
      this.#resolve(host, { ...options, all: true }, (error, addresses) => {
        const problem = error ?? whyNot(assertHeld);
        if (problem !== null) {
          callback(problem, []);
          return;
        }
        const allowed = addresses.filter(({ address }) => isAllowed(address, this.#allow));
        const [first] = allowed;
        if (first === undefined) callback(addressRefused(host, addresses[0]?.address ?? ''), []);
        else if (all) callback(null, allowed);
        else callback(null, first.address, first.family);
      });
    };
  }
}

function whyNot(check: () => void): Error | null {
  try {
    check();
    return null;
  } catch (error) {
    return error as Error;
  }
}
