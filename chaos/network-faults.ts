/** What the nemesis can do to packets of a run in namespaces. */
import type { Home } from '../test/support/home.ts';
import type { Crew, Instance } from './crew.ts';
import { ANY_MS, type InstanceFault, ofLink, type StoreFault, storeFault } from './faults.ts';
import type { Network } from './network.ts';
import {
  allLost,
  apart,
  between,
  halfOpen,
  oldLost,
  oneWay,
  repliesLost,
  requestsLost,
  someLost,
} from './network-rules.ts';
import { RECOVERY_MS } from './timings.ts';

const LOSS_PERCENT = 30;

type Packets = Pick<Network, 'under' | 'slowed'>;

/** Between one instance and all servers. */
export function networkLinkFaults(network: Packets): InstanceFault[] {
  const fault = (name: string, rulesFor: (home: Home) => string[]) =>
    ofLink(name, ANY_MS, ({ home }, { lastsMs, pause }) =>
      network.under(rulesFor(home), () => pause(lastsMs)),
    );
  return [
    fault('cut', allLost),
    fault('requests lost', requestsLost),
    fault('replies lost', repliesLost),
    fault('half-open', halfOpen),
    fault('old connections lost', oldLost),
    fault('packets lost', (home) => someLost(home, LOSS_PERCENT)),
    ofLink('slow link', ANY_MS, ({ home }, { lastsMs, pause }) =>
      network.slowed(home, () => pause(lastsMs)),
    ),
  ];
}

/** The servers of a store, as far as cutting them off goes. */
export interface Servers {
  readonly homes: readonly Home[];
  readonly lastsMs: readonly [number, number];
  /** One of those that take writes. */
  primary(pick: number): Promise<Home>;
  /** What has to happen while a primary is cut off, before that is healed. */
  meanwhile?(primary: Home): Promise<unknown>;
  /** Runs a fault, and returns when the store is whole again. */
  around(fault: () => Promise<void>): Promise<void>;
}

/** A primary is cut off from other servers, from clients, or from both, in one direction or in both. */
export function partitions(network: Packets, servers: Servers): StoreFault[] {
  const { homes, lastsMs } = servers;
  const fault = (
    name: string,
    rulesFor: (primary: Home, companions: readonly Home[]) => string[],
  ) =>
    storeFault(name, {
      lastsMs,
      inflict: ({ crew, pick, pause, lastsMs: forMs }) =>
        servers.around(async () => {
          const primary = await servers.primary(pick);
          await network.under(rulesFor(primary, companionsOf(crew, pick)), async () => {
            await servers.meanwhile?.(primary);
            await pause(forMs);
          });
        }),
    });
  const others = (primary: Home) => homes.filter((home) => home !== primary);
  return [
    fault('primary and half of the clients cut off', (primary, companions) =>
      apart([primary, ...companions]),
    ),
    fault('primary cut off', (primary) => apart([primary])),
    fault('primary deaf to servers', (primary) => oneWay(others(primary), [primary])),
    fault('primary mute to servers', (primary) => oneWay([primary], others(primary))),
    storeFault('primary cut off from half of the clients', {
      lastsMs: ANY_MS,
      recoveryMs: RECOVERY_MS.plain,
      inflict: async ({ crew, pick, pause, lastsMs: forMs }) => {
        const companions = companionsOf(crew, pick);
        if (companions.length === 0) return;
        const primary = await servers.primary(pick);
        await network.under(between([primary], companions), () => pause(forMs));
      },
    }),
  ];
}

/** Every second instance. */
function companionsOf(crew: Crew, pick: number): Home[] {
  const first = pick < 0.5 ? 0 : 1;
  const all: readonly Instance[] = [...crew.instances];
  return all.filter((_, i) => i % 2 === first).map(({ home }) => home);
}
