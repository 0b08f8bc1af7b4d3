/**
 * What the targets' owners write to, each with its fence: it takes a write only if it has seen no
 * higher one. It lies behind a network of its own, so a write that left in time may arrive when
 * another instance owns the target.
 */
import type { Random } from '../../src/core/random.ts';
import type { SimProcess } from './host.ts';
import { PHASE, type Timeline } from './timeline.ts';

/** How long a write is under way. */
const DELAY_LEAST_MS = 0.2;
const DELAY_SPREAD_MS = 5;

export interface Write {
  readonly target: string;
  readonly fence: number;
  readonly by: string;
}

export interface DeviceParts {
  readonly timeline: Timeline;
  readonly random: Random;
  onWrite(write: Write, isAccepted: boolean): void;
}

export class Device {
  readonly #parts: DeviceParts;
  readonly #seen = new Map<string, number>();

  constructor(parts: DeviceParts) {
    this.#parts = parts;
  }

  write(process: SimProcess, target: string, fence: number): void {
    const { timeline, random } = this.#parts;
    const by = process.name;
    process.reach('act');
    if (process.isDead) return;
    const delayMs = DELAY_LEAST_MS + random.next() * DELAY_SPREAD_MS;
    const arrive = () => this.#arrive({ target, fence, by });
    timeline.at(process.trueMs + delayMs, arrive, PHASE.outside);
  }

  #arrive(write: Write): void {
    const isAccepted = write.fence >= (this.#seen.get(write.target) ?? 0);
    if (isAccepted) this.#seen.set(write.target, write.fence);
    this.#parts.onWrite(write, isAccepted);
  }
}
