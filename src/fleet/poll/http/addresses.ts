/**
 * Which addresses a poll may reach. A user who may add a target chooses a URL that this process
 * then requests: without a rule that opens every service that only this host can reach. A name says
 * nothing about its address, so the rule applies to the address, after it is resolved.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { AddressRefusedError } from '../../targets/errors.ts';

/** The zones that may be allowed beyond public addresses. */
export const ZONES = ['loopback', 'private'] as const;
export type Zone = (typeof ZONES)[number];

export type AddressKind = 'public' | Zone | 'link-local' | 'metadata' | 'multicast' | 'reserved';

/**
 * The first match counts. From IANA's registries of special-purpose addresses. `metadata` are those
 * where clouds give their machines credentials, in any range.
 */
const KINDS: readonly [AddressKind, readonly string[]][] = [
  [
    'metadata',
    [
      '169.254.169.254/32',
      '100.100.100.200/32',
      '168.63.129.16/32',
      // Amazon, Google, Scaleway, Oracle: among the private addresses, which may be allowed.
      'fd00:ec2::/32',
      'fd20:ce::254/128',
      'fd00:42::42/128',
      'fd00:c1::a9fe:a9fe/128',
    ],
  ],
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7']],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
  ['multicast', ['224.0.0.0/4', 'ff00::/8']],
  [
    'reserved',
    [
      '0.0.0.0/8',
      '192.0.0.0/24',
      '192.0.2.0/24',
      '192.88.99.0/24',
      '198.18.0.0/15',
      '198.51.100.0/24',
      '203.0.113.0/24',
      '240.0.0.0/4',
      '2001::/23',
      '2001:db8::/32',
      '2002::/16',
      '3fff::/20',
    ],
  ],
  ['public', ['0.0.0.0/0', '2000::/3']],
];

const LISTS = KINDS.map(([kind, networks]) => [kind, blockList(networks)] as const);

export function kindOf(address: string): AddressKind {
  const plain = withoutZone(address);
  if (isIPv4(plain)) return kindIn(plain, 'ipv4');
  if (!isIPv6(plain)) return 'reserved';
  const inner = innerIPv4(groupsOf(plain));
  return inner === null ? kindIn(plain, 'ipv6') : kindIn(inner, 'ipv4');
}

/** Whether the address is in a zone that is polled only if allowed. An unknown one is not. */
export function isInside(address: string | undefined): boolean {
  const kind = kindOf(address ?? '');
  return ZONES.some((zone) => zone === kind);
}

export function isAllowed(address: string, allow: ReadonlySet<Zone>): boolean {
  const kind = kindOf(address);
  return kind === 'public' || isZone(kind, allow);
}

/** The host of a URL if it is an address and not a name. */
export function literalOf(url: URL): string | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return isIPv4(host) || isIPv6(host) ? host : null;
}

export function addressRefused(host: string, address: string): AddressRefusedError {
  const kind = kindOf(address);
  const advice = ZONES.some((zone) => zone === kind)
    ? `If that is meant, allow it: http: { allow: ['${kind}'] }; a redirect from outside never leads there.`
    : 'Such addresses are never polled: give the target another one.';
  return new AddressRefusedError({ host, kind, advice });
}

function isZone(kind: AddressKind, allow: ReadonlySet<Zone>): boolean {
  for (const zone of allow) if (zone === kind) return true;
  return false;
}

/** An address in none of the networks has no known use: it is not polled. */
function kindIn(address: string, family: 'ipv4' | 'ipv6'): AddressKind {
  return LISTS.find(([, list]) => list.check(address, family))?.[0] ?? 'reserved';
}

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/');
    list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return list;
}

function withoutZone(address: string): string {
  return address.replace(/%.*$/s, '');
}

/** The IPv4 address in an IPv6 one: mapped (`::ffff:0:0/96`), or NAT64 (`64:ff9b::/96`). */
function innerIPv4(groups: readonly number[]): string | null {
  const head = groups.slice(0, 6).join();
  if (head !== '0,0,0,0,0,65535' && head !== '100,65435,0,0,0,0') return null;
  const [high = 0, low = 0] = groups.slice(6);
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** The eight numbers of an IPv6 address, however it is written. */
function groupsOf(address: string): number[] {
  // A URL writes every IPv6 address in one way: hexadecimal, with at most one `::`.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const numbers = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  if (tail === undefined) return numbers(head);
  const [left, right] = [numbers(head), numbers(tail)];
  return [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
}
