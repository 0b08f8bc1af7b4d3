/**
 * A world of processes that follow the sessions of one store while these come and go by the dozen,
 * and another program writes into them. Some are frozen, cut off or killed meanwhile. Once they are
 * let heal, every one knows exactly what there is.
 */
import { type Random, seededRandom } from '../../src/core/random.ts';
import type { Reply } from '../../src/store/redis/client/wire.ts';
import { Audit } from './audit.ts';
import { Counters } from './counters.ts';
import { Cures } from './cures.ts';
import type { Episode, Fault, FaultKind } from './faults.ts';
import type { SimProcess } from './host.ts';
import { Machine } from './machine.ts';
import { type NetworkParts, verbOf } from './network.ts';
import { RecordsClient, SESSION_IDS } from './records-client.ts';
import { mixed, Seat } from './seat.ts';
import { PHASE, Timeline } from './timeline.ts';
import { Trace } from './trace.ts';
import type { WorldReport } from './world.ts';
import { runWorld, Stop } from './world-run.ts';

export interface RecordsOptions {
  readonly seed: number;
  readonly hours: number;
  readonly episodes?: readonly Episode[];
}

const HOUR_MS = 3_600_000;
const CLIENTS = 3;
const EPISODE_MS = 60_000;
/**
 * Long enough for a process that was cut off to connect again, and for a look for what another
 * program wrote.
 */
const HEAL_MS = 45_000;
const FAULTS_MOST = 12;
const FAULT_MOST_MS = 20_000;
const SLOW_MOST_MS = 700;
const FOREIGN_EVERY_MS = 3_000;
/** What can go wrong without a loss of data. */
const KINDS = [
  'crash',
  'freeze',
  'cut',
  'cut out',
  'cut back',
  'reset',
  'slow',
  'store freezes',
] as const;
type Kind = (typeof KINDS)[number];

export class RecordsWorld {
  readonly #options: RecordsOptions;
  readonly #timeline = new Timeline();
  readonly #counters = new Counters();
  readonly #cures = new Cures(this.#timeline);
  readonly #trace: Trace;
  readonly #audit: Audit;
  readonly #machine: Machine;
  readonly #seats: readonly Seat<RecordsClient>[];
  readonly #episodes: readonly Episode[];
  /** Of the other program. */
  readonly #random: Random;
  #isCalm = false;
  #episode = 0;

  constructor(options: RecordsOptions) {
    const { seed, hours } = options;
    const timeline = this.#timeline;
    const counters = this.#counters;
    const trace = new Trace(() => timeline.nowMs);
    this.#options = options;
    this.#trace = trace;
    this.#audit = new Audit(() => timeline.nowMs, counters);
    const witness = (args: readonly string[], _: Reply, __: SimProcess) => trace.mix(verbOf(args));
    this.#machine = new Machine(timeline, seededRandom(mixed(seed, 41)), witness);
    this.#random = seededRandom(mixed(seed, 42));
    const make = (network: NetworkParts) => new RecordsClient({ network, counters });
    const common = { timeline, counters, trace, seed, make, machine: this.#machine };
    this.#seats = Array.from(
      { length: CLIENTS },
      (_, number) => new Seat({ ...common, number, rate: 1 }),
    );
    const most = Math.ceil((hours * HOUR_MS) / (EPISODE_MS + HEAL_MS));
    this.#episodes = options.episodes ?? planRecords(seededRandom(mixed(seed, 43)), most);
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

  async #live(): Promise<void> {
    const timeline = this.#timeline;
    for (const seat of this.#seats) seat.start();
    this.#writeLater();
    for (const [number, { faults, lastsMs }] of this.#episodes.entries()) {
      this.#episode = number;
      const fromMs = timeline.nowMs;
      if (fromMs >= this.#options.hours * HOUR_MS) return;
      this.#rest(false);
      for (const fault of faults)
        timeline.at(fromMs + fault.atMs, () => this.#strike(fault), PHASE.observer);
      await timeline.run(fromMs + lastsMs);
      this.#rest(true);
      await timeline.run(timeline.nowMs + FAULT_MOST_MS + HEAL_MS);
      this.#check();
    }
  }

  #rest(isCalm: boolean): void {
    this.#isCalm = isCalm;
    if (isCalm) {
      this.#cures.rest();
      for (const seat of this.#seats) seat.start();
    } else this.#cures.resume();
    for (const { instance } of this.#seats) if (instance !== null) instance.isResting = isCalm;
  }

  #strike({ kind, seat: number, forMs, size }: Fault): void {
    const seat = this.#seats[number];
    if (seat === undefined) return;
    this.#counters.add(`fault: ${kind}`);
    this.#trace.note('nemesis', kind, { seat: number, forMs: Math.round(forMs) });
    const { path } = seat;
    const cut = (how: { out: boolean; back: boolean }) => {
      path.cut(how);
      this.#cures.later(forMs, () => path.cut({ out: false, back: false }));
    };
    const strikes: Record<Kind, () => void> = {
      crash: () => {
        seat.kill();
        this.#cures.later(forMs, () => seat.start());
      },
      freeze: () => seat.process?.freeze(forMs),
      cut: () => cut({ out: true, back: true }),
      'cut out': () => cut({ out: true, back: false }),
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
    strikes[kind as Kind]();
  }

  /** Another program writes sessions, in place and without telling, twice in a row now and then. */
  #writeLater(): void {
    const timeline = this.#timeline;
    const random = this.#random;
    const inMs = random.next() * FOREIGN_EVERY_MS;
    timeline.at(timeline.nowMs + inMs, () => this.#writeLater(), PHASE.observer);
    if (this.#isCalm) return;
    const id = SESSION_IDS[Math.floor(random.next() * 3)] ?? '';
    const key = `session:${id}`;
    if (this.#machine.peek(['EXISTS', key]) === 0) return;
    this.#machine.peek(['SET', key, JSON.stringify({ n: random.next() })]);
    this.#counters.add('records: written by another program');
  }

  /** Every process knows every session, as it is, and no other. */
  #check(): void {
    const there = new Map<string, string>();
    for (const id of SESSION_IDS) {
      const json = this.#machine.peek(['GET', `session:${id}`]);
      if (typeof json === 'string') there.set(id, json);
    }
    for (const { instance } of this.#seats) this.#compare(instance, there);
    this.#counters.add('healed');
    if (this.#audit.violation !== null) throw new Stop();
  }

  #compare(instance: RecordsClient | null, there: ReadonlyMap<string, string>): void {
    const known = instance?.sessions;
    const name = instance?.process.name ?? 'nobody';
    if (known === null || known === undefined) {
      this.#audit.report('healing', '', `${name} has not connected`);
      return;
    }
    for (const [id, json] of there)
      if (JSON.stringify(known.get(id)?.data) !== json)
        this.#audit.report('healing', id, `${name} does not know ${id} as it is`);
    for (const id of known.keys())
      if (!there.has(id)) this.#audit.report('healing', id, `${name} knows ${id}, which is gone`);
  }
}

function planRecords(random: Random, episodes: number): Episode[] {
  const fault = (): Fault => ({
    kind: (KINDS[Math.floor(random.next() * KINDS.length)] ?? 'freeze') satisfies FaultKind,
    atMs: random.next() * EPISODE_MS,
    forMs: random.next() * FAULT_MOST_MS,
    seat: Math.floor(random.next() * CLIENTS),
    size: random.next(),
    point: '',
  });
  return Array.from({ length: episodes }, () => {
    const count = Math.floor(random.next() * FAULTS_MOST);
    return { lastsMs: EPISODE_MS, faults: Array.from({ length: count }, fault) };
  });
}
