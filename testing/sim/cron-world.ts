/**
 * Three hosts with the same crontab, and clocks of their own, up to 30 s off. What is promised of
 * `once`:
 *
 * - in a calm world, every fire is run once;
 * - where hosts are killed, stand still and lose their connections, with `skip`: every period has
 *   at most one run;
 * - with `retry`, while one host is up all the time: every fire is run to its end, and not again
 *   once that end is on record;
 * - in all of them: a process that begins has the lease.
 */
import { type Random, seededRandom } from '../../src/core/random.ts';
import type { OnceOptions } from '../../src/lease/once.ts';
import type { Reply } from '../../src/store/redis/client/wire.ts';
import { Audit } from './audit.ts';
import { Counters } from './counters.ts';
import { CRON_KEY, CronClient } from './cron-client.ts';
import { Cures } from './cures.ts';
import type { Episode, Fault, FaultKind } from './faults.ts';
import type { SimProcess } from './host.ts';
import { Machine } from './machine.ts';
import { type NetworkParts, verbOf } from './network.ts';
import { mixed, Seat } from './seat.ts';
import { PHASE, Timeline } from './timeline.ts';
import { Trace } from './trace.ts';
import type { WorldReport } from './world.ts';
import { runWorld, Stop } from './world-run.ts';

export interface CronOptions {
  readonly seed: number;
  readonly hours: number;
  readonly episodes?: readonly Episode[];
}

const HOUR_MS = 3_600_000;
const HOSTS = 3;
/** In a world with `retry`, nothing happens to this host. */
const SPARED = 2;
const PER_MS = 600_000;
const CLOCK_MS = 30_000;
const TTL_MS = 30_000;
/** The clocks, and a lease that expires before the job begins elsewhere, share the tolerance. */
const TOLERANCE_MS = 2 * CLOCK_MS + 2 * TTL_MS;
/** Of two runs. A lease is granted at most one TTL before its job begins. */
const LEAST_DISTANCE_MS = PER_MS - TOLERANCE_MS - TTL_MS;
/** The hosts connect, and a new store grants nothing for a while. */
const FIRST_FIRE_MS = 300_000;
/** At every other fire the clocks are this close: then hosts meet while the job runs. */
const CLOSE_MS = 40;
/**
 * Faults strike within this time after a host's fire: the job takes 50 ms, and half of them strike
 * before it begins.
 */
const STRIKE_MS = 60;
const EARLY_STRIKE_MS = 4;
/** Longer than a lease, and now and then longer than a period. */
const FAULT_MOST_MS = 90_000;
const LONG_MS = 1.1 * PER_MS;
const SLOW_MOST_MS = 700;

const MODES = ['calm', 'skip', 'retry'] as const;
type Mode = (typeof MODES)[number];
const KINDS: Readonly<Record<Mode, readonly CronFault[]>> = {
  calm: [],
  skip: ['crash', 'freeze', 'cut', 'cut back', 'reset', 'slow', 'store freezes'],
  retry: ['crash', 'freeze'],
};
type CronFault = Extract<
  FaultKind,
  'crash' | 'freeze' | 'cut' | 'cut back' | 'reset' | 'slow' | 'store freezes'
>;

export class CronWorld {
  readonly #options: CronOptions;
  readonly #mode: Mode;
  readonly #timeline = new Timeline();
  readonly #counters = new Counters();
  readonly #cures = new Cures(this.#timeline);
  readonly #trace: Trace;
  readonly #audit: Audit;
  readonly #machine: Machine;
  readonly #seats: readonly Seat<CronClient>[];
  readonly #episodes: readonly Episode[];
  readonly #random: Random;
  readonly #offsetsMs: number[] = Array.from({ length: HOSTS }, () => 0);
  /** The last run: when it began, and whether its end is on record. */
  #last = { beganMs: Number.NEGATIVE_INFINITY, hasEnded: true };
  /** Runs that have ended since the last check. */
  #ended = 0;
  #episode = 0;

  constructor(options: CronOptions) {
    const { seed, hours } = options;
    const timeline = this.#timeline;
    const counters = this.#counters;
    const trace = new Trace(() => timeline.nowMs);
    this.#options = options;
    this.#trace = trace;
    this.#audit = new Audit(() => timeline.nowMs, counters);
    this.#mode = MODES[seed % MODES.length] ?? 'calm';
    const witness = (args: readonly string[], _: Reply, __: SimProcess) => trace.mix(verbOf(args));
    this.#machine = new Machine(timeline, seededRandom(mixed(seed, 51)), witness);
    this.#random = seededRandom(mixed(seed, 52));
    const make = (network: NetworkParts) => this.#makeClient(network);
    const common = { timeline, counters, trace, seed, make, machine: this.#machine };
    this.#seats = Array.from(
      { length: HOSTS },
      (_, number) => new Seat({ ...common, number, rate: 1 }),
    );
    const fires = Math.max(1, Math.floor((hours * HOUR_MS - FIRST_FIRE_MS) / PER_MS));
    this.#episodes =
      options.episodes ?? planCron(seededRandom(mixed(seed, 53)), KINDS[this.#mode], fires);
  }

  async run(): Promise<WorldReport> {
    await runWorld({
      timeline: this.#timeline,
      audit: this.#audit,
      settled: () => {},
      live: () => this.#live(),
    });
    return {
      seed: this.#options.seed,
      simulatedMs: this.#timeline.nowMs,
      violation: this.#audit.violation,
      counters: this.#counters,
      digest: this.#trace.digest,
      notes: this.#trace.notes,
      episodes: this.#episodes,
      episode: this.#episode,
      steps: this.#timeline.steps,
    };
  }

  #makeClient(network: NetworkParts): CronClient {
    const options: OnceOptions = {
      per: PER_MS,
      tolerance: TOLERANCE_MS,
      onCrash: this.#mode === 'retry' ? 'retry' : 'skip',
      // A host takes over from one that died, if it still waits.
      wait: this.#mode === 'retry' ? PER_MS / 2 : 0,
    };
    return new CronClient({
      network,
      options,
      counters: this.#counters,
      onBegan: (fire, process, holder) => this.#began(fire, process, holder),
      onEnded: () => {
        this.#ended++;
      },
      onRan: (fire, process) => this.#ran(fire, process),
    });
  }

  async #live(): Promise<void> {
    const timeline = this.#timeline;
    for (const seat of this.#seats) seat.start();
    for (const [fire, { faults }] of this.#episodes.entries()) {
      this.#episode = fire;
      const fireMs = FIRST_FIRE_MS + fire * PER_MS;
      this.#setClocks();
      for (const [number, seat] of this.#seats.entries()) {
        const atMs = fireMs - (this.#offsetsMs[number] ?? 0);
        timeline.at(atMs, () => this.#fire(fire, seat), PHASE.observer);
        for (const fault of faults.filter((one) => one.seat === number))
          timeline.at(atMs + fault.atMs, () => this.#strike(fault, seat), PHASE.observer);
      }
      await timeline.run(fireMs + PER_MS / 2 + CLOCK_MS);
      this.#check(fire);
    }
  }

  /** Clocks are set between fires: all of them stay within 30 s of the true time. */
  #setClocks(): void {
    const mostMs = this.#random.next() < 0.5 ? CLOCK_MS : CLOSE_MS;
    for (const [number, seat] of this.#seats.entries()) {
      const offsetMs = (this.#random.next() * 2 - 1) * mostMs;
      seat.host.stepWall(offsetMs - (this.#offsetsMs[number] ?? 0));
      this.#offsetsMs[number] = offsetMs;
    }
  }

  /** A process that stands still starts the job when it thaws. */
  #fire(fire: number, { instance, process }: Seat<CronClient>): void {
    process?.deliver(() => void instance?.fire(fire));
  }

  #strike({ kind, forMs, size }: Fault, seat: Seat<CronClient>): void {
    const { path } = seat;
    if (this.#mode === 'retry' && this.#seats.indexOf(seat) === SPARED) return;
    this.#counters.add(`fault: ${kind}`);
    this.#trace.note('nemesis', kind, { forMs: Math.round(forMs) });
    const cut = (how: { out: boolean; back: boolean }) => {
      path.cut(how);
      this.#cures.later(forMs, () => path.cut({ out: false, back: false }));
    };
    const strikes: Record<CronFault, () => void> = {
      crash: () => {
        seat.kill();
        this.#cures.later(forMs, () => seat.start());
      },
      freeze: () => seat.process?.freeze(forMs),
      cut: () => cut({ out: true, back: true }),
      'cut back': () => cut({ out: false, back: true }),
      reset: () => path.breakOff(),
      slow: () => {
        path.slowMs = size * SLOW_MOST_MS;
        this.#cures.later(forMs, () => {
          path.slowMs = 0;
        });
      },
      'store freezes': () => this.#machine.freeze(forMs / 4),
    };
    strikes[kind as CronFault]();
  }

  #began(fire: number, process: SimProcess, holder: string): void {
    const { nowMs } = this.#timeline;
    const distanceMs = nowMs - this.#last.beganMs;
    const isAgain = distanceMs < LEAST_DISTANCE_MS;
    this.#counters.add('cron: began');
    this.#trace.note(process.name, 'began', { fire });
    const broken = (text: string) =>
      this.#audit.report('periods', CRON_KEY, `${process.name} begins ${text}`);
    if (this.#machine.peek(['GET', `lease:${CRON_KEY}`]) !== holder) broken('without the lease');
    if (isAgain && this.#mode !== 'retry') broken(`${distanceMs} ms after the last run`);
    if (isAgain && this.#last.hasEnded) broken('again after the end of the last run');
    if (isAgain) this.#counters.add('cron: started over');
    this.#last = { beganMs: nowMs, hasEnded: false };
  }

  #ran(fire: number, process: SimProcess): void {
    // A process that lost its lease may end its job after another has begun: that end is refused.
    const record = String(this.#machine.peek(['GET', `once:${CRON_KEY}`]));
    this.#last.hasEnded = !record.includes('"endedAtMs":null');
    this.#trace.note(process.name, 'ran', { fire });
  }

  #check(fire: number): void {
    this.#counters.add('cron: fires');
    if (this.#ended === 0 && this.#mode !== 'skip')
      this.#audit.report('periods', CRON_KEY, `fire ${fire} was not run to its end`);
    this.#ended = 0;
    if (this.#audit.violation !== null) throw new Stop();
  }
}

function planCron(random: Random, kinds: readonly CronFault[], fires: number): Episode[] {
  const fault = (): Fault => ({
    kind: kinds[Math.floor(random.next() * kinds.length)] ?? 'freeze',
    atMs: random.next() * (random.next() < 0.5 ? STRIKE_MS : EARLY_STRIKE_MS),
    forMs: random.next() < 0.1 ? LONG_MS : random.next() * FAULT_MOST_MS,
    seat: Math.floor(random.next() * HOSTS),
    size: random.next(),
    point: '',
  });
  return Array.from({ length: fires }, () => {
    const count = kinds.length === 0 ? 0 : Math.floor(random.next() * 3);
    return { lastsMs: PER_MS, faults: Array.from({ length: count }, fault) };
  });
}
