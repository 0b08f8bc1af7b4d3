/**
 * Accepts only clients of configured networks. This is defence in depth and not authentication:
 * addresses can be forged within a network, and an accepted client still needs a token.
 *
 * Behind a proxy the peer of the connection is the proxy, and the address of the client is in
 * `X-Forwarded-For`. Any client can send that header, so it is read only from trusted proxies, from
 * right to left: each address was added by the host to its right, and the first that is not a
 * trusted proxy is the client. An address that cannot be parsed is refused, never skipped.
 */
import { BlockList, isIP, SocketAddress } from 'node:net';
import { ConfigError } from '../../core/errors.ts';
import { Problem } from './problem.ts';

export interface LanSettings {
  /** Networks of allowed clients: `10.0.0.0/8`, `fd00::/8`, or single addresses. */
  readonly allow: readonly string[];
  /** Proxies whose `X-Forwarded-For` is trusted; default none. */
  readonly trustedProxies?: readonly string[];
}

interface Address {
  readonly text: string;
  readonly family: 'ipv4' | 'ipv6';
}

/** More proxies in a row than in any real set-up. A longer header is an attempt to waste time. */
const MAX_HOPS = 32;
/** The header may have spaces and tabs around an address, and no other whitespace. */
const HOP = /^[ \t]*([^ \t]*)[ \t]*$/;
const CIDR_RULE = 'must be an address or a network, such as 192.0.2.7, 10.0.0.0/8 or fd00::/8';
const FIELDS = new Set(['allow', 'trustedProxies']);

/** The settings, parsed. */
export interface Lan {
  readonly allowed: BlockList;
  readonly proxies: BlockList;
}

export function parseLan(settings: LanSettings): Lan {
  for (const name of Object.keys(settings)) {
    const rule = `unknown setting; lan has ${[...FIELDS].join(', ')}`;
    if (!FIELDS.has(name)) throw new ConfigError({ field: `lan.${name}`, value: undefined, rule });
  }
  const { allow, trustedProxies = [] } = settings;
  const allowed = parseNetworks(allow, 'lan.allow');
  const proxies = parseNetworks(trustedProxies, 'lan.trustedProxies');
  if (allow.length === 0) {
    const rule = 'must name at least one network; leave out lan to allow all clients';
    throw new ConfigError({ field: 'lan.allow', value: allow, rule });
  }
  return { allowed, proxies };
}

/** Throws unless the client is in an allowed network. `peer`: the other end of the connection. */
export function checkClient(
  { allowed, proxies }: Lan,
  peer: string | undefined,
  forwardedFor: string | null,
): void {
  const client = clientOf(proxies, peer, forwardedFor);
  if (!contains(allowed, client)) throw refusal('The client is in none of them.');
}

function clientOf(
  proxies: BlockList,
  peer: string | undefined,
  forwardedFor: string | null,
): Address {
  const from = peer === undefined ? null : parseAddress(peer);
  if (from === null) throw refusal('The address of the client cannot be determined.');
  if (!contains(proxies, from)) return from;
  const hops = (forwardedFor ?? '').split(',', MAX_HOPS + 1);
  if (hops.length > MAX_HOPS) throw refusal('X-Forwarded-For has too many addresses.');
  const addresses = hops.map((hop) => {
    const address = parseAddress(HOP.exec(hop)?.[1] ?? '');
    if (address === null)
      throw refusal('The request came over a proxy, and X-Forwarded-For is not a valid list.');
    return address;
  });
  const client = addresses.findLast((address) => !contains(proxies, address));
  // Where all addresses are trusted proxies, the first of them is the client.
  return client ?? addresses[0] ?? from;
}

/** True for an address that only this host can reach. */
export function isLoopback(text: string): boolean {
  const address = parseAddress(text);
  return address !== null && contains(LOOPBACK, address);
}

/**
 * Null for anything but a plain address: names, ports, zones, brackets, and notations of numbers
 * that only some programs understand.
 */
function parseAddress(text: string): Address | null {
  // isIP accepts a zone, but it has no meaning on another host.
  if (text.includes('%')) return null;
  const version = isIP(text);
  if (version === 0) return null;
  if (version === 4) return { text, family: 'ipv4' };
  const canonical = new SocketAddress({ address: text, family: 'ipv6' }).address;
  // A dual-stack socket shows IPv4 peers in this form.
  const mapped = /^::ffff:([\d.]+)$/i.exec(canonical)?.[1];
  return mapped === undefined
    ? { text: canonical, family: 'ipv6' }
    : { text: mapped, family: 'ipv4' };
}

function contains(list: BlockList, { text, family }: Address): boolean {
  return list.check(text, family);
}

function parseNetworks(networks: readonly string[], field: string): BlockList {
  if (!Array.isArray(networks))
    throw new ConfigError({ field, value: networks, rule: 'must be a list of networks' });
  const list = new BlockList();
  networks.forEach((network: unknown, i) => {
    const [text = '', bits, ...rest] = typeof network === 'string' ? network.split('/') : [];
    const address = parseAddress(text);
    const maxBits = address?.family === 'ipv4' ? 32 : 128;
    // The prefix length of an IPv4-mapped address would count from the wrong bit.
    const isMapped = address?.family === 'ipv4' && text.includes(':');
    const areBits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= maxBits);
    if (address === null || isMapped || !areBits || rest.length > 0)
      throw new ConfigError({ field: `${field}[${i}]`, value: network, rule: CIDR_RULE });
    list.addSubnet(address.text, bits === undefined ? maxBits : Number(bits), address.family);
  });
  return list;
}

function refusal(why: string): Problem {
  return new Problem('outside-lan', {
    detail: `This server only accepts clients of certain networks. ${why}`,
  });
}

const LOOPBACK = parseNetworks(['127.0.0.0/8', '::1'], 'loopback');
