/**
 * What goes wrong around the handlers under test, and when. The plan follows from the seed before
 * anything runs; so a plan with some of its faults left out is a plan too, and a failure can be
 * shrunk.
 *
 * Each world has only some of the kinds, chosen by its seed: many of them together hide what a few
 * would show.
 */
import type { Random } from '../../src/core/random.ts';
import type { Episode, Fault } from '../sim/faults.ts';

/** What can go wrong, each with its meaning. All of them do, unless they are switched off. */
export const SIMULATED_FAULTS = {
  kill: 'A process is killed, at any moment or at a named point, and starts again later.',
  restart: 'A process is told to stop, closes its Holdfast, and starts again.',
  freeze: 'A process stands still, often for longer than its leases last.',
  'lost reply': 'The store or the sink carries requests out, and its replies do not arrive.',
  'clock step': 'The wall clock of a machine is set.',
  'cut off': 'One instance cannot reach the store.',
  'store outage': 'No instance can reach the store.',
  'sink outage': 'Writes of one instance to the sink are held up, and arrive late.',
  'duplicate delivery':
    'A process is killed when a handler is done, before the store knows: the work is given out again.',
} as const;

export type SimulatedFault = keyof typeof SIMULATED_FAULTS;
export type SimulatedEpisode = Episode<SimulatedFault>;

export const FAULT_NAMES = Object.keys(SIMULATED_FAULTS) as SimulatedFault[];

/** For so long things go wrong; then they are let heal for so long. */
export const TROUBLE_MS = 90_000;
export const HEAL_MS = 60_000;
/** How long a fault lasts: half of them longer than a lease of the default TTL, and some twice. */
const FAULT_LEAST_MS = 5_000;
const FAULT_MOST_MS = 65_000;
const FAULTS_LEAST = 2;
const FAULTS_MOST = 8;
const KINDS_MOST = 3;

/** Where a handler has returned, and the store does not know yet. */
export const DONE = 'done';
/** Where a process can be caught: `act` is where it is about to write to the sink. */
const POINTS = ['act', 'act', 'act', 'clock', 'lease/renew', 'record/put', DONE] as const;

export interface FaultPlanParts {
  readonly random: Random;
  readonly kinds: readonly SimulatedFault[];
  readonly instances: number;
  readonly durationMs: number;
}

export function planFaults({
  random,
  kinds,
  instances,
  durationMs,
}: FaultPlanParts): SimulatedEpisode[] {
  const among = <T>(all: readonly T[]) => all[Math.floor(random.next() * all.length)] as T;
  const left = [...kinds];
  const chosen: SimulatedFault[] = [];
  const count = 1 + Math.floor(random.next() * KINDS_MOST);
  while (chosen.length < count && left.length > 0)
    chosen.push(...left.splice(Math.floor(random.next() * left.length), 1));
  const fault = (): Fault<SimulatedFault> => {
    const kind = among(chosen);
    return {
      kind,
      atMs: random.next() * TROUBLE_MS,
      forMs: FAULT_LEAST_MS + random.next() * (FAULT_MOST_MS - FAULT_LEAST_MS),
      seat: Math.floor(random.next() * instances),
      size: random.next(),
      point: among(kind === 'duplicate delivery' ? [DONE] : POINTS),
    };
  };
  const episodes = Math.max(1, Math.floor(durationMs / (TROUBLE_MS + HEAL_MS)));
  return Array.from({ length: episodes }, () => {
    const spread = FAULTS_MOST - FAULTS_LEAST + 1;
    const faults = chosen.length === 0 ? 0 : FAULTS_LEAST + Math.floor(random.next() * spread);
    return { lastsMs: TROUBLE_MS, faults: Array.from({ length: faults }, fault) };
  });
}
