/** Inflicts the planned faults on the instances of a world, and ends them again. */

import { spanOf } from '../../src/core/time-text.ts';
import type { Counters } from '../sim/counters.ts';
import { Cures } from '../sim/cures.ts';
import type { Fault } from '../sim/faults.ts';
import type { Path } from '../sim/network.ts';
import { type Seat, trap } from '../sim/seat.ts';
import type { Timeline } from '../sim/timeline.ts';
import type { Trace } from '../sim/trace.ts';
import { DONE, type SimulatedFault } from './faults.ts';
import type { Instance } from './instance.ts';

/** A place of an instance: its process, and its ways to the store and to the sink. */
export interface InstanceSeat {
  readonly name: string;
  readonly seat: Seat<Instance>;
  readonly sinkPath: Path;
}

export interface NemesisParts {
  readonly timeline: Timeline;
  readonly seats: readonly InstanceSeat[];
  readonly trace: Trace;
  readonly counters: Counters;
}

/** Of the length of a fault: how long a killed process stays away. */
const RESTART_SHARE = 1 / 3;
/** Replies are lost for a shorter time than a freeze lasts: no handler gets on meanwhile. */
const REPLIES_SHARE = 1 / 3;
const CLOCK_MOST_MS = 60_000;
/** A trap springs at one of the first so many passes of its point. */
const PASSES_MOST = 3;
/** For so long after a fault, a setup may still fail because of it. */
const AFTERMATH_MS = 15_000;

type Struck = Fault<SimulatedFault>;

export class Nemesis {
  readonly #parts: NemesisParts;
  readonly #cures: Cures;
  #troubleUntilMs = 0;

  constructor(parts: NemesisParts) {
    this.#parts = parts;
    this.#cures = new Cures(parts.timeline);
  }

  /** Whether nothing is wrong, nor was lately. */
  get isQuiet(): boolean {
    const { nowMs } = this.#parts.timeline;
    return this.#cures.size === 0 && nowMs > this.#troubleUntilMs + AFTERMATH_MS;
  }

  resume(): void {
    this.#cures.resume();
  }

  /** Ends every fault, and removes traps that have not sprung. */
  rest(): void {
    this.#cures.rest();
    this.#troubleUntilMs = Math.max(this.#troubleUntilMs, this.#parts.timeline.nowMs);
    for (const { seat } of this.#parts.seats) if (seat.process !== null) seat.process.trap = null;
  }

  strike(fault: Struck): void {
    const found = this.#parts.seats[fault.seat];
    if (found === undefined) return;
    const { nowMs } = this.#parts.timeline;
    this.#troubleUntilMs = Math.max(this.#troubleUntilMs, nowMs + fault.forMs);
    this.#strikes[fault.kind](fault, found);
  }

  readonly #strikes: Readonly<Record<SimulatedFault, (fault: Struck, at: InstanceSeat) => void>> = {
    kill: (fault, at) => {
      if (fault.size < 1 / 2) this.#kill(fault, at, 'is killed');
      else this.#caught(fault, at, () => this.#kill(fault, at, `is killed ${whereOf(fault)}`));
    },
    'duplicate delivery': (fault, at) =>
      this.#caught(fault, at, () =>
        this.#kill(fault, at, 'is killed: the store does not learn what it has just done'),
      ),
    restart: ({ kind, forMs }, { name, seat }) => {
      if (seat.instance === null) return;
      this.#struck(kind, name, 'is told to stop');
      void seat.stop();
      this.#cures.later(forMs * RESTART_SHARE, () => seat.start());
    },
    freeze: (fault, at) => {
      const span = spanOf(fault.forMs);
      const freeze = (where: string) => {
        at.seat.process?.freeze(fault.forMs);
        this.#struck('freeze', at.name, `stands still for ${span}${where}`);
      };
      if (fault.size < 1 / 2) freeze('');
      else this.#caught(fault, at, () => freeze(`, ${whereOf(fault)}`));
    },
    'lost reply': ({ kind, forMs, size }, { name, seat, sinkPath }) => {
      const lostMs = forMs * REPLIES_SHARE;
      const [path, whose] = size < 1 / 2 ? [sinkPath, 'the sink'] : [seat.path, 'the store'];
      this.#struck(kind, name, `gets no reply of ${whose} for ${spanOf(lostMs)}`);
      this.#cut(path, { out: false, back: true }, lostMs);
    },
    'clock step': ({ kind, size }, { name, seat }) => {
      const ms = (size - 1 / 2) * 2 * CLOCK_MOST_MS;
      seat.host.stepWall(ms);
      const way = ms < 0 ? 'back' : 'forward';
      this.#struck(kind, name, `has its wall clock set ${way} by ${spanOf(Math.abs(ms))}`);
    },
    'cut off': ({ kind, forMs }, { name, seat }) => {
      this.#struck(kind, name, `cannot reach the store for ${spanOf(forMs)}`);
      this.#cut(seat.path, { out: true, back: true }, forMs);
    },
    'store outage': ({ kind, forMs }) => {
      this.#struck(kind, 'no instance', `can reach the store for ${spanOf(forMs)}`);
      for (const { seat } of this.#parts.seats)
        this.#cut(seat.path, { out: true, back: true }, forMs);
    },
    'sink outage': ({ kind, forMs }, { name, sinkPath }) => {
      this.#struck(kind, name, `cannot reach the sink for ${spanOf(forMs)}: writes arrive late`);
      this.#cut(sinkPath, { out: true, back: true }, forMs);
    },
  };

  #struck(kind: SimulatedFault, name: string, what: string): void {
    this.#parts.counters.add(`fault: ${kind}`);
    this.#parts.trace.note(name, what, { fault: kind });
  }

  #kill({ kind, forMs }: Struck, { name, seat }: InstanceSeat, what: string): void {
    if (seat.instance === null) return;
    this.#struck(kind, name, what);
    seat.kill();
    this.#cures.later(forMs * RESTART_SHARE, () => seat.start());
  }

  #caught(fault: Struck, { seat }: InstanceSeat, spring: () => void): void {
    const { counters, trace } = this.#parts;
    const passes = Math.floor(fault.size * PASSES_MOST);
    trap(seat, { point: fault.point, passes, counters, trace, spring });
  }

  #cut(path: Path, how: { out: boolean; back: boolean }, forMs: number): void {
    path.cut(how);
    this.#cures.later(forMs, () => path.cut({ out: false, back: false }));
  }
}

const PLACES: Readonly<Record<string, string>> = {
  [DONE]: 'as a handler of its has just returned',
  act: 'as it is about to write to the sink',
  clock: 'as it reads the clock',
  'lease/renew': 'as it is about to renew its leases',
  'record/put': 'as it is about to store a result',
};

function whereOf({ point }: Struck): string {
  return PLACES[point] ?? `at ${point}`;
}
