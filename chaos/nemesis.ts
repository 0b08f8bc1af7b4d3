/**
 * Chooses faults by a seed, and inflicts them. Which kinds, in which order, when, for how long, and on which of those that
 * can be chosen, comes from the seed alone. The state of the processes does not: processes and networks have a pace of
 * their own, so the same seed gives the same faults, and never quite the same run.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../src/core/random.ts';
import type { Crew } from './crew.ts';
import type { FaultKind, Scene } from './faults.ts';
import type { HistoryFile } from './history.ts';

/** Between the beginnings of two faults. Many last longer, and so they overlap. */
const BETWEEN_MS = [200, 2_800] as const;

/** Between two attempts to start an instance. */
const RETRY_MS = 500;
/** After the last fault, instances are replaced for this long yet: a store that is not back after it never will be. */
const REPLACE_MS = 30_000;

export interface PlannedFault {
  readonly kind: FaultKind;
  /** From the beginning of the run. */
  readonly startMs: number;
  readonly lastsMs: number;
  readonly pick: number;
}

/** Every kind once, in random order, then again: none is left out for long. */
export function planFaults(
  kinds: readonly FaultKind[],
  random: Random,
  forMs: number,
): PlannedFault[] {
  const between = ([leastMs, mostMs]: readonly [number, number]) =>
    leastMs + random.next() * (mostMs - leastMs);
  const planned: PlannedFault[] = [];
  let deck: FaultKind[] = [];
  for (let startMs = between(BETWEEN_MS); startMs < forMs; startMs += between(BETWEEN_MS)) {
    if (deck.length === 0) deck = [...kinds];
    const [kind] = deck.splice(Math.floor(random.next() * deck.length), 1);
    if (kind === undefined) break;
    planned.push({ kind, startMs, lastsMs: between(kind.lastsMs), pick: random.next() });
  }
  return planned;
}

export interface NemesisParts {
  readonly crew: Crew;
  readonly history: HistoryFile;
  readonly signal: AbortSignal;
}

export class Nemesis {
  /** What is being inflicted now, as people read it. */
  readonly underWay = new Set<string>();
  readonly #parts: NemesisParts;
  /** One fault of the store at a time: the next waits until it is whole again. */
  #store: Promise<void> = Promise.resolve();
  readonly #replacements: Promise<void>[] = [];
  #replaceUntilMs = Number.POSITIVE_INFINITY;
  #begun = 0;

  constructor(parts: NemesisParts) {
    this.#parts = parts;
  }

  get begun(): number {
    return this.#begun;
  }

  /** Inflicts them all, and returns when everything is healed. */
  async run(planned: readonly PlannedFault[], forMs: number): Promise<void> {
    const { history, signal } = this.#parts;
    const startedAt = performance.now();
    const leftMs = (atMs: number) => Math.max(0, atMs - (performance.now() - startedAt));
    const running: Promise<void>[] = [];
    for (const fault of planned) {
      await sleep(leftMs(fault.startMs), undefined, { signal }).catch(() => {});
      if (signal.aborted) break;
      const isOver = () => signal.aborted || leftMs(forMs) === 0;
      running.push(fault.kind.on === 'store' ? this.#onStore(fault, isOver) : this.#onOne(fault));
    }
    await sleep(leftMs(forMs), undefined, { signal }).catch(() => {});
    await Promise.all(running);
    this.#replaceUntilMs = performance.now() + REPLACE_MS;
    await Promise.all(this.#replacements);
    history.write('nemesis', 'nemesis.rested');
  }

  #onStore(fault: PlannedFault, isOver: () => boolean): Promise<void> {
    const { kind } = fault;
    if (kind.on !== 'store') return Promise.resolve();
    this.#store = this.#store.then(async () => {
      if (!isOver()) await this.#inflict(fault, 'store', (scene) => kind.inflict(scene));
    });
    return this.#store;
  }

  async #onOne(fault: PlannedFault): Promise<void> {
    const { kind, pick } = fault;
    if (kind.on === 'store') return;
    const well = [...this.#parts.crew.instances].filter(
      ({ afflictions: has }) => !has.has(kind.on),
    );
    const victim = well[Math.floor(pick * well.length)];
    // All are in that kind of trouble already.
    if (victim === undefined) return;
    victim.afflictions.add(kind.on);
    await this.#inflict(fault, victim.id, (scene) => kind.inflict(victim, scene));
    victim.afflictions.delete(kind.on);
  }

  async #inflict(
    { kind, lastsMs, pick }: PlannedFault,
    victim: string,
    inflict: (scene: Scene) => Promise<void>,
  ): Promise<void> {
    const { crew, history, signal } = this.#parts;
    this.#begun += 1;
    const fault = this.#begun;
    const { name, recoveryMs, mayBreak } = kind;
    const label = victim === 'store' ? name : `${name} (${victim.split('-')[0]})`;
    history.write('nemesis', 'fault.began', {
      fault,
      kind: name,
      victim,
      lastsMs,
      recoveryMs,
      mayBreak,
    });
    this.underWay.add(label);
    const pause = (ms: number) => sleep(ms, undefined, { signal });
    const replaceAfter = (ms: number) => void this.#replacements.push(this.#replace(ms));
    try {
      await inflict({ crew, lastsMs, pick, pause, replaceAfter });
    } catch (error) {
      // Not the run's failure: what a fault that went wrong leaves behind, the checker sees.
      if (!signal.aborted)
        history.write('nemesis', 'fault.failed', { fault, kind: name, error: String(error) });
    }
    this.underWay.delete(label);
    history.write('nemesis', 'fault.ended', { fault, kind: name });
  }

  /** Tries again where it fails: it cannot succeed while the store is down. */
  async #replace(afterMs: number): Promise<void> {
    const { crew, signal } = this.#parts;
    const isOver = () => signal.aborted || performance.now() > this.#replaceUntilMs;
    for (let waitMs = afterMs; !isOver(); waitMs = RETRY_MS) {
      await sleep(waitMs, undefined, { signal }).catch(() => {});
      const isStarted = await crew.start().then(
        () => true,
        () => false,
      );
      if (isStarted) return;
    }
  }
}
