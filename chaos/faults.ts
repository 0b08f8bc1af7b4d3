/**
 * What the nemesis can do to an instance, or to its link to the store; what it can do to a store is with the store, in
 * `topologies.ts`. Each kind says how long it lasts, how long after its end targets may go without a poll, and which
 * invariants it may break: none, unless it says so. A fault ends healed, even where it is cut short.
 */
import { isStopped } from '../test/support/process.ts';
import { until } from '../test/support/until.ts';
import type { Invariant } from './checker.ts';
import type { Crew, Instance } from './crew.ts';
import { RECOVERY_MS, TTL_MS } from './timings.ts';

/** Where and how long a fault is inflicted. */
export interface Scene {
  readonly crew: Crew;
  readonly lastsMs: number;
  /** In [0, 1), from the seed: for whatever else is to be chosen. */
  readonly pick: number;
  /** Waits; rejects when the run is cut short. */
  pause(ms: number): Promise<void>;
  /** Starts a new instance that much later, when the fault itself is over. */
  replaceAfter(ms: number): void;
}

interface FaultFacts {
  readonly name: string;
  readonly lastsMs: readonly [number, number];
  readonly recoveryMs: number;
  readonly mayBreak: readonly Invariant[];
}

export interface InstanceFault extends FaultFacts {
  readonly on: 'process' | 'link';
  inflict(instance: Instance, scene: Scene): Promise<void>;
}

export interface StoreFault extends FaultFacts {
  readonly on: 'store';
  inflict(scene: Scene): Promise<void>;
}

export type FaultKind = InstanceFault | StoreFault;

/** Well within the deadline, and well beyond the TTL. */
const SHORT_MS = [300, 2_000] as const;
const LONG_MS = [TTL_MS + 300, 2 * TTL_MS + 500] as const;
export const ANY_MS = [300, 2 * TTL_MS] as const;

/** How long to wait for an instance to come to a write: several polls. One that owns nothing is let be. */
const WRITE_DEADLINE_MS = 2_000;
const MOST_DELAY_MS = 700;
const RESETS = 4;

export const PROCESS_FAULTS: readonly InstanceFault[] = [
  {
    ...ofProcess('kill', [0, 2_000], async (instance, { crew, lastsMs, replaceAfter }) => {
      await crew.kill(instance);
      replaceAfter(lastsMs);
    }),
    recoveryMs: RECOVERY_MS.kill,
  },
  {
    ...ofProcess('stop', [0, 1_000], async (instance, { crew, lastsMs, replaceAfter }) => {
      await crew.stop(instance);
      replaceAfter(lastsMs);
    }),
    recoveryMs: RECOVERY_MS.stop,
  },
  ofProcess('short freeze', SHORT_MS, freeze),
  ofProcess('freeze', LONG_MS, freeze),
  ofProcess('freeze at write', LONG_MS, async ({ child }, { lastsMs, pause }) => {
    child.send({ do: 'freeze at write', isOn: true });
    try {
      if (await standsStillWithin(child.pid, WRITE_DEADLINE_MS)) await pause(lastsMs);
    } finally {
      child.send({ do: 'freeze at write', isOn: false });
      child.signal('SIGCONT');
    }
  }),
  // Its leases have expired when it is told to stop: another instance may hold what it releases.
  ofProcess('stop after a freeze', LONG_MS, async (instance, scene) => {
    const { crew } = scene;
    await instance.child.freeze();
    try {
      await scene.pause(scene.lastsMs);
    } finally {
      const stopping = crew.stop(instance);
      instance.child.signal('SIGCONT');
      await stopping;
    }
    scene.replaceAfter(0);
  }),
  ofProcess('blocked loop', ANY_MS, async ({ child }, { lastsMs, pause }) => {
    child.send({ do: 'block', ms: lastsMs });
    await pause(lastsMs);
  }),
];

export const LINK_FAULTS: readonly InstanceFault[] = [
  ofLink('half-open', ANY_MS, async ({ links }, { lastsMs, pause }) => {
    await Promise.all(links.map((link) => link.halfOpen()));
    await pause(lastsMs);
  }),
  ofLink('lost replies', ANY_MS, async ({ links }, { lastsMs, pause }) => {
    await Promise.all(links.map((link) => link.loseReplies()));
    await pause(lastsMs);
  }),
  // Requests that are carried out long after their sender gave them up.
  ofLink('late requests', ANY_MS, async ({ links }, { lastsMs, pause }) => {
    await Promise.all(links.map((link) => link.holdRequests()));
    await pause(lastsMs / 2);
    // Meanwhile its sender may have found another way.
    await Promise.all(links.map((link) => link.pass()));
    await pause(lastsMs / 2);
    for (const link of links) link.releaseHeld();
  }),
  ofLink('reset', [0, 2_000], async ({ links }, { lastsMs, pause }) => {
    for (let i = 0; i < RESETS; i += 1) {
      for (const link of links) link.reset();
      await pause(lastsMs / RESETS);
    }
  }),
  ofLink('delay', ANY_MS, async ({ links }, { lastsMs, pick, pause }) => {
    await Promise.all(links.map((link) => link.delay(pick * MOST_DELAY_MS)));
    await pause(lastsMs);
  }),
  ofLink('cut', ANY_MS, async ({ links }, { lastsMs, pause }) => {
    const refusing = Promise.all(links.map((link) => link.refuse()));
    for (const link of links) link.reset();
    await refusing;
    await pause(lastsMs);
  }),
];

export function storeFault(
  name: string,
  facts: Omit<Partial<StoreFault>, 'name' | 'on'> & Pick<StoreFault, 'inflict'>,
): StoreFault {
  return {
    on: 'store',
    name,
    lastsMs: ANY_MS,
    recoveryMs: RECOVERY_MS.forgotten,
    mayBreak: [],
    ...facts,
  };
}

function ofProcess(
  name: string,
  lastsMs: readonly [number, number],
  inflict: InstanceFault['inflict'],
): InstanceFault {
  const recoveryMs = RECOVERY_MS.plain;
  return { on: 'process', name, lastsMs, recoveryMs, mayBreak: [], inflict };
}

/** However it ends, the link is whole again. */
export function ofLink(
  name: string,
  lastsMs: readonly [number, number],
  harm: InstanceFault['inflict'],
): InstanceFault {
  const inflict: InstanceFault['inflict'] = async (instance, scene) => {
    try {
      await harm(instance, scene);
    } finally {
      await Promise.all(instance.links.map((link) => link.pass()));
      for (const link of instance.links) link.releaseHeld();
    }
  };
  return { on: 'link', name, lastsMs, recoveryMs: RECOVERY_MS.plain, mayBreak: [], inflict };
}

function standsStillWithin(pid: number, deadlineMs: number): Promise<boolean> {
  return until(() => isStopped(pid), { what: 'it to stop at a write', deadlineMs }).then(
    () => true,
    () => false,
  );
}

async function freeze({ child }: Instance, { lastsMs, pause }: Scene): Promise<void> {
  await child.freeze();
  try {
    await pause(lastsMs);
  } finally {
    await child.thaw();
  }
}
