import { describe, expect, it } from 'vitest';
import type { Crew, Instance } from '../../chaos/crew.ts';
import type { FaultKind, Scene } from '../../chaos/faults.ts';
import { planFaults } from '../../chaos/nemesis.ts';
import { networkLinkFaults, partitions } from '../../chaos/network-faults.ts';
import {
  addressOf,
  halfOpen,
  JUDGE_NET,
  oldLost,
  STORE_NET,
  someLost,
  tableOf,
} from '../../chaos/network-rules.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Home } from '../support/home.ts';

const home = (name: string, number: number): Home => {
  return { name, address: addressOf(STORE_NET, number), enter: [] };
};
const [primary, replica, a, b] = [
  home('primary', 2),
  home('replica', 3),
  home('a', 4),
  home('b', 5),
] as const;
const ALL = [primary, replica, a, b];
const crew = { instances: new Set([{ home: a }, { home: b }] as Instance[]) } as Crew;
const scene: Scene = {
  crew,
  lastsMs: 0,
  pick: 0,
  pause: async () => {},
  replaceAfter: () => {},
};

/** Rules that faults were given, instead of a network. */
class Recorder {
  readonly rules: string[] = [];
  async under(rules: readonly string[], meanwhile: () => Promise<void>): Promise<void> {
    this.rules.push(...rules);
    await meanwhile();
  }
  slowed = (_: Home, meanwhile: () => Promise<void>) => meanwhile();
}

const TERM = /ip ([sd])addr (!= )?(\{[^}]*\}|\S+)/g;

/** Whether these rules let a packet pass, by their addresses alone. */
function passes(rules: readonly string[], from: Home, to: Home): boolean {
  const isDropped = rules.some((rule) =>
    [...rule.matchAll(TERM)].every(([, end, not, set = '']) => {
      const { address } = end === 's' ? from : to;
      return set.split(/[{}, ]+/).includes(address) === (not === undefined);
    }),
  );
  return !isDropped;
}

/** Every way that is cut, as `from→to`. */
function cutWays(rules: readonly string[]): string[] {
  const pairs = ALL.flatMap((from) => ALL.filter((to) => to !== from).map((to) => ({ from, to })));
  return pairs
    .filter(({ from, to }) => !passes(rules, from, to))
    .map(({ from, to }) => `${from.name}→${to.name}`);
}

function kindsOn(network: Recorder): FaultKind[] {
  const servers = {
    homes: [primary, replica],
    lastsMs: [0, 0] as const,
    primary: async () => primary,
    around: (fault: () => Promise<void>) => fault(),
  };
  return [...networkLinkFaults(network), ...partitions(network, servers)];
}

async function cutBy(name: string): Promise<string[]> {
  const network = new Recorder();
  const kind = kindsOn(network).find((one) => one.name === name);
  if (kind?.on === 'store') await kind.inflict(scene);
  else await kind?.inflict({ home: a, links: [] } as unknown as Instance, scene);
  return cutWays(network.rules);
}

describe('what is cut', () => {
  it.each([
    ['requests lost', ['a→primary', 'a→replica', 'a→b']],
    ['replies lost', ['primary→a', 'replica→a', 'b→a']],
    ['primary deaf to servers', ['replica→primary']],
    ['primary mute to servers', ['primary→replica']],
    ['primary cut off from half of the clients', ['primary→a', 'a→primary']],
    ['primary cut off', ['primary→replica', 'primary→a', 'primary→b']],
  ])('%s: %s, and nothing else', async (name, ways) => {
    const both = name === 'primary cut off' ? ways.map((way) => way.split('→').reverse()) : [];
    expect(new Set(await cutBy(name))).toEqual(
      new Set([...ways, ...both.map((way) => way.join('→'))]),
    );
  });

  it('a primary that is cut off with a client reaches that client alone', async () => {
    const ways = await cutBy('primary and half of the clients cut off');
    expect(ways).not.toContain('primary→a');
    expect(ways).not.toContain('a→primary');
    expect(ways).not.toContain('b→replica');
    expect(ways).toHaveLength(8);
  });
});

it('a seed plans the same faults of a network again, every kind in its turn', () => {
  const kinds = kindsOn(new Recorder());
  const planned = () =>
    planFaults(kinds, seededRandom(5), 60_000).map(({ kind, startMs, lastsMs, pick }) => {
      return { name: kind.name, startMs, lastsMs, pick };
    });
  expect(planned()).toEqual(planned());
  const first = planned().slice(0, kinds.length);
  expect(new Set(first.map(({ name }) => name)).size).toBe(kinds.length);
});

it('homes have addresses of their own, on the network of the store and on that of the judges', () => {
  expect(addressOf(STORE_NET, 2)).toBe('10.77.0.2');
  expect(addressOf(JUDGE_NET, 600)).toBe('10.78.2.88');
  expect(() => addressOf(STORE_NET, 0)).toThrow(RangeError);
  expect(() => addressOf(STORE_NET, 65_535)).toThrow('a network has 1 to 65534');
});

it('a half-open connection drops data alone, and a loss drops some packets of both directions', () => {
  for (const rule of halfOpen(a)) expect(rule).toMatch(/\(syn \| rst\) == 0 ip length > 52 drop$/);
  const lost = someLost(a, 30);
  expect(lost).toHaveLength(2);
  for (const rule of lost) expect(rule).toMatch(/numgen random mod 100 < 30 drop$/);
});

it('each fault is a table of its own, which drops where bridges forward', () => {
  const table = tableOf('fault7', oldLost(a));
  expect(table).toMatch(/^table bridge fault7 \{/);
  expect(table).toContain('type filter hook forward');
  expect(table.indexOf('@fresh accept')).toBeLessThan(table.indexOf(`ip saddr ${a.address} drop`));
  expect(table.split('{').length).toBe(table.split('}').length);
});
