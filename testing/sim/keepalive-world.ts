/**
 * A world of processes that hold many leases of one memory store over a bad network: the store
 * renews all leases of a process by one row. Processes are killed, frozen, put to sleep and cut
 * off, requests are carried out late and answers are lost, and operators revoke leases.
 */
import { type Random, seededRandom } from '../../src/core/random.ts';
import { MemoryLeases } from '../../src/store/memory/leases.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { KEYSPACES } from '../../src/store/port/keyspaces.ts';
import type { Store } from '../../src/store/port/store.ts';
import { Audit } from './audit.ts';
import { Believers } from './believers.ts';
import { Counters } from './counters.ts';
import { Cures } from './cures.ts';
import type { Episode, Fault, FaultKind } from './faults.ts';
import { SimHost, SimProcess } from './host.ts';
import { KeepaliveAudit } from './keepalive-audit.ts';
import { KeepaliveClient } from './keepalive-client.ts';
import { Machine } from './machine.ts';
import type { NetworkParts } from './network.ts';
import { mixed, Seat, trap } from './seat.ts';
import { PHASE, Timeline } from './timeline.ts';
import { Trace } from './trace.ts';
import type { WorldReport } from './world.ts';
import { runWorld, Stop } from './world-run.ts';

export interface KeepaliveOptions {
  readonly seed: number;
  readonly hours: number;
  readonly episodes?: readonly Episode[];
}

const HOUR_MS = 3_600_000;
const CLIENTS = 4;
const KEYS: readonly string[] = Array.from({ length: 6 }, (_, n) => `k${n}`);
const EPISODE_MS = 60_000;
const HEAL_MS = 60_000;
const FAULTS_MOST = 14;
const FAULT_MOST_MS = 12_000;
const SLOW_MOST_MS = 700;
const DRIFT = 0.001;
const CLOCK_MOST_MS = 20_000;
/** Once all is well, no lease that no process believes in is held for longer than this. */
const UNUSED_MOST_MS = 25_000;
const LOOK_EVERY_MS = 500;

const KINDS = [
  'crash',
  'stop',
  'freeze',
  'freeze at',
  'cut',
  'cut out',
  'cut back',
  'slow',
  'store freezes',
  'revoke',
  // A clock that is set back may hide a sleep: a world has one of the two.
  'sleep',
  'set clock',
] as const satisfies readonly FaultKind[];
type Kind = (typeof KINDS)[number];

const POINTS = ['clock', 'lease/keepAlive', 'lease/renew', 'lease/release', 'lease/acquire'];

/** What a long run has to have come to, each at least once. */
export const KEEPALIVE_STATES: readonly string[] = [
  ...KINDS.map((kind) => `fault: ${kind}`),
  'keepalive kept',
  'keepalive gone',
  'keepalive buried by a takeover',
  'detachment told',
  'attached lease acquired again by its holder',
  'attached lease revoked',
  'attached to another keepalive',
  'lease.lost: expired',
  'lease.lost: revoked',
  'lease.abandoned',
  'healed with attached leases',
];

export class KeepaliveWorld {
  readonly #options: KeepaliveOptions;
  readonly #timeline = new Timeline();
  readonly #counters = new Counters();
  readonly #cures = new Cures(this.#timeline);
  readonly #trace: Trace;
  readonly #audit: Audit;
  readonly #believers: Believers;
  readonly #keepalives: KeepaliveAudit;
  readonly #server: SimProcess;
  readonly #store: Store;
  readonly #seats: readonly Seat<KeepaliveClient>[];
  readonly #episodes: readonly Episode[];
  readonly #random: Random;
  /** By key: since when a lease is held that no process believes in. */
  readonly #unusedSinceMs = new Map<string, { fence: number; sinceMs: number }>();
  #isCalm = false;
  #episode = 0;

  constructor(options: KeepaliveOptions) {
    const { seed, hours } = options;
    const timeline = this.#timeline;
    const counters = this.#counters;
    const nowMs = () => timeline.nowMs;
    const random = seededRandom(mixed(seed, 61));
    const drift = () => 1 + (random.next() - 0.5) * 2 * DRIFT;
    const audit = new Audit(nowMs, counters);
    this.#options = options;
    this.#random = random;
    this.#trace = new Trace(nowMs);
    this.#audit = audit;
    const ttlsMs = [2_000 + random.next() * 4_000, 2_000 + random.next() * 8_000].map(Math.round);
    this.#believers = new Believers({
      nowMs,
      counters,
      boundMs: Math.max(...ttlsMs),
      report: (invariant, key, text) => void audit.report(invariant, key, text),
    });
    const host = new SimHost(timeline, { rate: drift() });
    this.#server = new SimProcess(host, 'store', seededRandom(mixed(seed, 62)));
    this.#store = createMemoryStore({ clock: this.#server });
    this.#keepalives = new KeepaliveAudit({
      nowMs: () => this.#server.monotonicMs(),
      counters,
      report: (key, text) => void audit.report('keepalives', key, text),
    });
    const witnessed = new Machine(timeline, seededRandom(mixed(seed, 63)), () => {});
    const make = (network: NetworkParts) => this.#client(network, ttlsMs);
    const common = { timeline, counters, trace: this.#trace, seed, make, machine: witnessed };
    this.#seats = Array.from(
      { length: CLIENTS },
      (_, number) => new Seat({ ...common, number, rate: drift() }),
    );
    const most = Math.ceil((hours * HOUR_MS) / (EPISODE_MS + FAULT_MOST_MS + HEAL_MS));
    this.#episodes = options.episodes ?? planKeepalives(seededRandom(mixed(seed, 64)), most, seed);
  }

  async run(): Promise<WorldReport> {
    await runWorld({
      timeline: this.#timeline,
      audit: this.#audit,
      settled: () => this.#believers.settled(),
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

  #client(network: NetworkParts, ttlsMs: readonly number[]): KeepaliveClient {
    const trace = this.#trace;
    return new KeepaliveClient({
      network,
      server: this.#server,
      store: this.#store,
      believers: this.#believers,
      counters: this.#counters,
      trace,
      keys: KEYS,
      ttlsMs,
      isNamed: this.#random.next() < 0.4,
      onCarriedOut: (verb, args, reply, by) => {
        trace.mix(`${by.name} ${verb}`);
        if (verb === 'acquire')
          this.#believers.granted(
            by,
            (reply as { fence?: number; kind: string }[]).flatMap(({ kind, fence }) =>
              kind === 'granted' && fence !== undefined ? [fence] : [],
            ),
          );
        this.#keepalives.carriedOut(verb, args, reply);
      },
    });
  }

  async #live(): Promise<void> {
    const timeline = this.#timeline;
    for (const seat of this.#seats) seat.start();
    this.#lookLater();
    for (const [number, { faults, lastsMs }] of this.#episodes.entries()) {
      this.#episode = number;
      const fromMs = timeline.nowMs;
      if (fromMs >= this.#options.hours * HOUR_MS) return;
      this.#isCalm = false;
      this.#unusedSinceMs.clear();
      this.#cures.resume();
      for (const fault of faults)
        timeline.at(fromMs + fault.atMs, () => this.#strike(fault), PHASE.observer);
      await timeline.run(fromMs + lastsMs);
      this.#cures.rest();
      await timeline.run(timeline.nowMs + FAULT_MOST_MS);
      for (const seat of this.#seats) seat.start();
      this.#isCalm = true;
      await timeline.run(timeline.nowMs + HEAL_MS);
      if (this.#keepalives.attached > 0) this.#counters.add('healed with attached leases');
      this.#counters.add('healed');
    }
  }

  #strike({ kind, seat: number, forMs, size, point }: Fault): void {
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
      stop: () => {
        void seat.stop();
        this.#cures.later(forMs, () => seat.start());
      },
      freeze: () => seat.process?.freeze(forMs),
      'freeze at': () =>
        trap(seat, {
          point,
          passes: Math.floor(size * 20),
          counters: this.#counters,
          trace: this.#trace,
          spring: (process) => process.freeze(forMs),
        }),
      cut: () => cut({ out: true, back: true }),
      'cut out': () => cut({ out: true, back: false }),
      'cut back': () => cut({ out: false, back: true }),
      slow: () => {
        path.slowMs = size * SLOW_MOST_MS;
        this.#cures.later(forMs, () => {
          path.slowMs = 0;
        });
      },
      'store freezes': () => this.#server.freeze(forMs / 4),
      revoke: () => {
        const key = KEYS[Math.floor(size * KEYS.length)] ?? '';
        void seat.instance?.revoke(key, forMs < FAULT_MOST_MS / 3).catch(() => {});
      },
      sleep: () => seat.host.sleep(forMs),
      'set clock': () => seat.host.stepWall((size - 0.5) * 2 * CLOCK_MOST_MS),
    };
    strikes[kind as Kind]();
  }

  /** Once all is well, no lease stays held that its process has given up. */
  #lookLater(): void {
    const timeline = this.#timeline;
    timeline.at(timeline.nowMs + LOOK_EVERY_MS, () => this.#lookLater(), PHASE.observer);
    const { leases } = this.#store;
    if (!this.#isCalm || !(leases instanceof MemoryLeases)) return;
    for (const key of KEYS) {
      const storeKey = KEYSPACES.lease + key;
      const { holder, fence } = leases.look(storeKey);
      const isUsed = holder === null || this.#believers.of(storeKey).length > 0;
      const known = this.#unusedSinceMs.get(storeKey);
      if (isUsed || known?.fence !== fence) {
        if (isUsed) this.#unusedSinceMs.delete(storeKey);
        else this.#unusedSinceMs.set(storeKey, { fence, sinceMs: timeline.nowMs });
      } else if (timeline.nowMs - known.sinceMs > UNUSED_MOST_MS) {
        const text = `${storeKey} stays held by ${holder}, which does not believe in it`;
        this.#audit.report('keepalives', storeKey, text);
        throw new Stop();
      }
    }
  }
}

function planKeepalives(random: Random, episodes: number, seed: number): Episode[] {
  const left = seed % 2 === 0 ? 'sleep' : 'set clock';
  const kinds = KINDS.filter((kind) => kind !== left);
  const fault = (): Fault => ({
    kind: kinds[Math.floor(random.next() * kinds.length)] ?? 'freeze',
    atMs: random.next() * EPISODE_MS,
    forMs: random.next() * FAULT_MOST_MS,
    seat: Math.floor(random.next() * CLIENTS),
    size: random.next(),
    point: POINTS[Math.floor(random.next() * POINTS.length)] ?? 'clock',
  });
  return Array.from({ length: episodes }, () => {
    const count = Math.floor(random.next() * FAULTS_MOST);
    return { lastsMs: EPISODE_MS, faults: Array.from({ length: count }, fault) };
  });
}
