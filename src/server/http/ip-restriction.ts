/**
 * Lets only clients of certain networks through. It is defence in depth and never authentication: addresses can be forged within a
 * network, and whoever is let through still needs a token.
 *
 * Behind a proxy the peer is the proxy, and the client's address is what that proxy wrote into `X-Forwarded-For`. Anybody can write such a
 * header, so it is read only if the peer is a proxy that is trusted, from right to left: each address was written by the one to the
 * right of it, and the first that is no trusted proxy is the client. What can not be read is refused, never skipped or guessed.
 */
import { BlockList, isIP, SocketAddress } from 'node:net';
import { ConfigError } from '../../core/errors.ts';
import { Problem } from './problem.ts';

export interface LanSettings {
  /** Networks that clients may be in: `10.0.0.0/8`, `fd00::/8`, or single addresses. */
  readonly allow: readonly string[];
  /** Proxies whose `X-Forwarded-For` is believed; default none. */
  readonly trustedProxies?: readonly string[];
}

interface Address {
  readonly text: string;
  readonly family: 'ipv4' | 'ipv6';
}

/** More proxies in a row than anybody has: a header made to keep us busy. */
const MOST_HOPS = 32;
/** With spaces around it, as the header may have them; other blanks are none of its own. */
const HOP = /^[ \t]*([^ \t]*)[ \t]*$/;
const CIDR_RULE = 'it is an address or a network, such as 192.0.2.7, 10.0.0.0/8 or fd00::/8';
const FIELDS = new Set(['allow', 'trustedProxies']);

export class IpRestriction {
  readonly #allowed: BlockList;
  readonly #proxies: BlockList;

  constructor(settings: LanSettings) {
    for (const name of Object.keys(settings)) {
      const rule = `there are ${[...FIELDS].join(', ')}`;
      if (!FIELDS.has(name))
        throw new ConfigError({ field: `lan.${name}`, value: undefined, rule });
    }
    const { allow, trustedProxies = [] } = settings;
    this.#allowed = listOf(allow, 'lan.allow');
    this.#proxies = listOf(trustedProxies, 'lan.trustedProxies');
    if (allow.length === 0) {
      const rule = 'it names at least one network; without a guard, leave out lan';
      throw new ConfigError({ field: 'lan.allow', value: allow, rule });
    }
  }

  /** Throws unless the client is in one of the networks. `peer` is who is connected, where that is known. */
  check(peer: string | undefined, forwardedFor: string | null): void {
    const client = this.#clientOf(peer, forwardedFor);
    if (!contains(this.#allowed, client)) throw refusal('The client is in none of them.');
  }

  #clientOf(peer: string | undefined, forwardedFor: string | null): Address {
    const from = peer === undefined ? null : addressOf(peer);
    if (from === null) throw refusal('Who is connected can not be told.');
    if (!contains(this.#proxies, from)) return from;
    const hops = (forwardedFor ?? '').split(',', MOST_HOPS + 1);
    if (hops.length > MOST_HOPS) throw refusal('X-Forwarded-For has too many addresses.');
    const addresses = hops.map((hop) => {
      const address = addressOf(HOP.exec(hop)?.[1] ?? '');
      if (address === null)
        throw refusal('It came over a proxy, and X-Forwarded-For is no list of addresses.');
      return address;
    });
    const client = addresses.findLast((address) => !contains(this.#proxies, address));
    // If all are proxies, the first of them is who asks.
    return client ?? addresses[0] ?? from;
  }
}

/** Whether it is an address that only this host reaches. */
export function isLoopback(text: string): boolean {
  const address = addressOf(text);
  return address !== null && contains(LOOPBACK, address);
}

/** Null for anything that is no plain address: names, ports, zones, brackets, and numbers in forms that only some programs understand. */
function addressOf(text: string): Address | null {
  // A zone is accepted by isIP, and means nothing on another host.
  if (text.includes('%')) return null;
  const version = isIP(text);
  if (version === 0) return null;
  if (version === 4) return { text, family: 'ipv4' };
  const canonical = new SocketAddress({ address: text, family: 'ipv6' }).address;
  // A socket for both families has IPv4 peers in this form.
  const mapped = /^::ffff:([\d.]+)$/i.exec(canonical)?.[1];
  return mapped === undefined
    ? { text: canonical, family: 'ipv6' }
    : { text: mapped, family: 'ipv4' };
}

function contains(list: BlockList, { text, family }: Address): boolean {
  return list.check(text, family);
}

function listOf(networks: readonly string[], field: string): BlockList {
  if (!Array.isArray(networks))
    throw new ConfigError({ field, value: networks, rule: 'it is a list of networks' });
  const list = new BlockList();
  networks.forEach((network: unknown, i) => {
    const [text = '', bits, ...rest] = typeof network === 'string' ? network.split('/') : [];
    const address = addressOf(text);
    // As it is written, because bits of a mapped address count from elsewhere.
    const mostBits = address?.family === 'ipv4' ? 32 : 128;
    const isMapped = address?.family === 'ipv4' && text.includes(':');
    const areBits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= mostBits);
    if (address === null || isMapped || !areBits || rest.length > 0)
      throw new ConfigError({ field: `${field}[${i}]`, value: network, rule: CIDR_RULE });
    list.addSubnet(address.text, bits === undefined ? mostBits : Number(bits), address.family);
  });
  return list;
}

function refusal(why: string): Problem {
  return new Problem('outside-lan', {
    detail: `Only clients in certain networks are served. ${why}`,
  });
}

const LOOPBACK = listOf(['127.0.0.0/8', '::1'], 'loopback');
