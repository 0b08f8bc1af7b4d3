/**
 * What goes wrong in a mixed world. Each episode has an incident, made of what the world drew: a
 * loss of data, a holder that is cut off from before it until after it, a newcomer, waiters that
 * freeze. Every part is a fault of its own, so that a failure can be narrowed down. Between the
 * parts there is noise.
 */
import type { Random } from '../../src/core/random.ts';
import { type Episode, type Fault, POINTS } from './faults.ts';
import { type Draw, pick } from './mixed-setting.ts';

export const MIXED_KINDS = [
  // Noise, to one client.
  'crash',
  'stop',
  'freeze',
  'freeze at',
  'sleep',
  'cut',
  'cut out',
  'cut back',
  'reset',
  'slow',
  // Losses of data, with and without new connections.
  'flush',
  'empty restart',
  'restart with data',
  'failover',
  // The address leads to the other server: promoted with the first one's data, or as it is.
  'address moves',
  'address moves back',
  // What goes with a loss, or comes alone.
  'holder is cut off',
  'holder is held up',
  'newcomer',
  'waiters freeze',
  'revoke',
  'store clock is set',
  'store clock is set right',
  // One connection of a client.
  'goes silent',
  'replies are late',
  'requests are doubled',
  // Between the store and all, or half, of its clients.
  'no replies',
  'no requests',
  'half are not heard',
  // The store refuses to write.
  'disk full',
  'out of memory',
  // A name leads to another server, and the one before still answers.
  'name moves',
  'clock rate changes',
] as const;
export type MixedKind = (typeof MIXED_KINDS)[number];
export type MixedFault = Fault<MixedKind>;
export type MixedEpisode = Episode<MixedKind>;

export interface MixedPlanParts {
  readonly random: Random;
  readonly draw: Draw;
  readonly boundMs: number;
  readonly seats: number;
  readonly episodes: number;
}

const NOISE = [
  'crash',
  'stop',
  'freeze',
  'freeze at',
  'sleep',
  'cut',
  'cut out',
  'cut out',
  'cut back',
  'reset',
  'slow',
] as const;
/** An episode lasts from this many bounds to twice as many. */
const EPISODE_BOUNDS = 3;
const MOST_NOISE_KINDS = 3;
/** The mean time between two faults of noise, in bounds. */
const NOISE_GAP_BOUNDS = [0.15, 0.5, 2] as const;
/** The share of worlds without any noise: there an incident shows what it does alone. */
const SILENT_SHARE = 0.4;
/** The shortest and the longest time for which a holder is cut off, in bounds. */
const CUT_OFF_BOUNDS = [0.1, 1.3] as const;
/**
 * A client whose own bound is twice as long would hold for this long without the store, if the
 * store let it in.
 */
const CUT_OFF_MISFIT_BOUNDS = [0.1, 2] as const;

export function shortestMixedEpisodeMs(boundMs: number): number {
  return boundMs * EPISODE_BOUNDS;
}

export function planMixed(parts: MixedPlanParts): MixedEpisode[] {
  const { random, boundMs } = parts;
  const isSilent = random.next() < SILENT_SHARE;
  const count = isSilent ? 0 : 1 + Math.floor(random.next() * MOST_NOISE_KINDS);
  const kinds = Array.from({ length: count }, () => pick(random, NOISE));
  const gapMs = boundMs * pick(random, NOISE_GAP_BOUNDS);
  return Array.from({ length: parts.episodes }, () => {
    const lastsMs = boundMs * EPISODE_BOUNDS * (1 + random.next());
    const faults = [...incident(parts, lastsMs), ...noise(parts, kinds, { gapMs, lastsMs })];
    return { lastsMs, faults: faults.sort((a, b) => a.atMs - b.atMs) };
  });
}

/** What the world drew, put together in time: the loss is in the first half of its episode. */
function incident(parts: MixedPlanParts, lastsMs: number): MixedFault[] {
  const { random, draw, boundMs } = parts;
  const lossMs = (0.1 + random.next() * 0.4) * lastsMs;
  const [least, most] = draw.bounds === 'the same' ? CUT_OFF_BOUNDS : CUT_OFF_MISFIT_BOUNDS;
  const cutMs = boundMs * (least + random.next() * (most - least));
  const beforeMs = random.next() * Math.min(2_000, lossMs);
  const newcomerMs = lossMs + random.next() ** 2 * boundMs;
  const frozenMs = random.next() * lastsMs;
  const clockMs = lossMs + (random.next() - 0.3) * boundMs;
  const faults = lossFaults(parts, lossMs, lastsMs);
  const add = (kind: MixedKind, atMs: number, given: Partial<MixedFault> = {}) =>
    faults.push({ ...fault(parts, kind, Math.max(0, atMs)), ...given });
  if (draw['cut off'] === 'a holder')
    add('holder is cut off', lossMs - beforeMs, { forMs: beforeMs + cutMs });
  // What a named holder sent under an earlier tenure may arrive under its next one.
  if (draw.holders === 'named')
    for (const share of [0.3, 0.7])
      add('holder is held up', (share + random.next() * 0.2) * lastsMs, { forMs: cutMs });
  if (draw.newcomers === 'after the loss') add('newcomer', newcomerMs);
  if (draw['frozen waiters'] !== 'none') add('waiters freeze', frozenMs);
  if (draw['store clock'] === 'stepped') add('store clock is set', clockMs);
  if (draw['store clock'] === 'ahead, then set right') add('store clock is set right', clockMs);
  if (draw.operator !== 'none')
    for (const share of [0.2, 0.5, 0.8]) add('revoke', (share + random.next() * 0.2) * lastsMs);
  for (const [kind, count] of networkFaults(draw))
    for (let i = 0; i < count; i++)
      // Nearer to the loss than by chance: what goes wrong together shows most.
      add(kind, lossMs + (random.next() - 0.5) * boundMs * 2);
  return faults;
}

/** What else the world drew, and how often in an episode. */
function networkFaults(draw: Draw): [MixedKind, number][] {
  const { connections, partition, memory } = draw;
  const faults: [MixedKind, number][] = [];
  if (connections === 'half-open') faults.push(['goes silent', 3]);
  if (connections === 'reordered') faults.push(['replies are late', 4]);
  if (connections === 'doubled') faults.push(['requests are doubled', 4]);
  if (partition !== 'none') faults.push([partition, 1]);
  if (memory === 'disk full' || memory === 'out of memory') faults.push([memory, 1]);
  if (draw['server name'] !== 'fixed') faults.push(['name moves', 1]);
  if (draw['clock rates'] !== 'steady') faults.push(['clock rate changes', 4]);
  return faults;
}

function lossFaults(parts: MixedPlanParts, lossMs: number, lastsMs: number): MixedFault[] {
  const { random, draw, boundMs } = parts;
  if (draw.loss === 'none') return [];
  if (draw.loss !== 'failback') return [fault(parts, draw.loss, lossMs)];
  const backMs = Math.min(lossMs + boundMs * (0.1 + random.next()), lastsMs);
  return [fault(parts, 'address moves', lossMs), fault(parts, 'address moves back', backMs)];
}

function noise(
  parts: MixedPlanParts,
  kinds: readonly MixedKind[],
  { gapMs, lastsMs }: { gapMs: number; lastsMs: number },
): MixedFault[] {
  const [first, ...others] = kinds;
  if (first === undefined) return [];
  const { random } = parts;
  const gap = () => -gapMs * Math.log(1 - random.next());
  const faults: MixedFault[] = [];
  for (let atMs = gap(); atMs < lastsMs; atMs += gap())
    faults.push(fault(parts, pick(random, [first, ...others]), atMs));
  return faults;
}

function fault(
  { random, boundMs, seats }: MixedPlanParts,
  kind: MixedKind,
  atMs: number,
): MixedFault {
  const isShort = random.next() < 0.5;
  return {
    kind,
    atMs,
    forMs: random.next() * boundMs * (isShort ? 0.2 : 1.3),
    seat: Math.floor(random.next() * seats),
    size: random.next(),
    point: POINTS[Math.floor(random.next() * POINTS.length)] ?? 'clock',
  };
}
