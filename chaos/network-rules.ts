/** What a fault does to packets, as rules of nftables for the bridges that all packets of a run cross. */
import type { Home } from '../test/support/home.ts';

type Address = Pick<Home, 'address'>;

const PREFIX = 16;
const OF_BYTE = 256;
/** The harness itself is the first on each network. */
export const HARNESS = 1;
/** Instances, servers and the harness. */
export const STORE_NET = 77;
/** Sink and target servers, with instances alone: no fault touches it. */
export const JUDGE_NET = 78;
const MOST_HOMES = OF_BYTE ** 2 - 2;

/** These addresses exist in the namespaces of a run, and nowhere else. */
export function addressOf(net: number, number: number): string {
  if (!Number.isInteger(number) || number < HARNESS || number > MOST_HOMES)
    throw new RangeError(`home ${number}: a network has 1 to ${MOST_HOMES}`);
  return `10.${net}.${Math.floor(number / OF_BYTE)}.${number % OF_BYTE}`;
}

/** For `ip address add`. */
export function withPrefix(address: string): string {
  return `${address}/${PREFIX}`;
}

/** Nothing gets from these to those; the other direction is whole. */
export function oneWay(from: readonly Address[], to: readonly Address[]): string[] {
  return [`ip saddr ${setOf(from)} ip daddr ${setOf(to)} drop`];
}

/** Nothing gets from these to those, nor back. */
export function between(these: readonly Address[], those: readonly Address[]): string[] {
  return [...oneWay(these, those), ...oneWay(those, these)];
}

/** A group reaches itself, and no other home reaches it. */
export function apart(group: readonly Address[]): string[] {
  const set = setOf(group);
  return [`ip saddr ${set} ip daddr != ${set} drop`, `ip saddr != ${set} ip daddr ${set} drop`];
}

export function requestsLost({ address }: Address): string[] {
  return [`ip saddr ${address} drop`];
}

export function repliesLost({ address }: Address): string[] {
  return [`ip daddr ${address} drop`];
}

export function allLost(home: Address): string[] {
  return [...requestsLost(home), ...repliesLost(home)];
}

export function someLost(home: Address, percent: number): string[] {
  return allLost(home).map((rule) =>
    rule.replace('drop', `numgen random mod 100 < ${percent} drop`),
  );
}

/** An acknowledgement alone has this length at most. */
const BARE_BYTES = 52;

/** Connections are made and kept, and carry nothing: bare acknowledgements pass, data does not. */
export function halfOpen(home: Address): string[] {
  const data = `tcp flags & (syn | rst) == 0 ip length > ${BARE_BYTES} drop`;
  return [`ip saddr ${home.address} ${data}`, `ip daddr ${home.address} ${data}`];
}

const CLIENT_END = 'ip saddr . tcp sport . ip daddr . tcp dport';
const SERVER_END = 'ip daddr . tcp dport . ip saddr . tcp sport';

/** As a firewall that has lost its state: old connections are silent, and never reset; new ones work. */
export function oldLost(home: Address): string[] {
  return [
    `ip saddr ${home.address} tcp flags & (syn | ack) == syn add @fresh { ${CLIENT_END} }`,
    `${CLIENT_END} @fresh accept`,
    `${SERVER_END} @fresh accept`,
    ...allLost(home),
  ];
}

/** A table of its own for each fault, so that one is healed whatever others continue. */
export function tableOf(name: string, rules: readonly string[]): string {
  return [
    `table bridge ${name} {`,
    'set fresh {',
    `typeof ${CLIENT_END}`,
    'flags dynamic',
    'size 65536',
    '}',
    'chain faults {',
    'type filter hook forward priority 0; policy accept;',
    ...rules,
    '}',
    '}',
    '',
  ].join('\n');
}

function setOf(homes: readonly Address[]): string {
  return `{ ${homes.map(({ address }) => address).join(', ')} }`;
}
