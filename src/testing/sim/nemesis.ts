/** Makes things go wrong as planned, and right again. */
import type { Random } from '../../base/random.ts';
import type { Audit } from './audit.ts';
import type { Counters } from './counters.ts';
import type { Fault, FaultKind } from './faults.ts';
import type { SimProcess } from './host.ts';
import { loseStarts } from './intent-sight.ts';
import type { Machine } from './machine.ts';
import type { Seat } from './seat.ts';
import { PHASE, type Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';
import { CLAIM_SHARE } from './workflow-crew.ts';

export interface NemesisParts {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly seats: readonly Seat[];
  readonly machine: Machine;
  readonly audit: Audit;
  readonly counters: Counters;
  readonly trace: Trace;
  readonly ttlMs: number;
}

/** A slow network takes up to this much longer. */
const SLOW_MOST_MS = 700;
/** Late answers come before their caller has given up on them, but later than the guard of a lease allows for. */
const LATE_LEAST_MS = 1_000;
const LATE_SPREAD_MS = 3_900;
const LATE_READ_MS = 100;
/** A server does not stay away, frozen or full for longer than this. */
const STORE_MOST_MS = 60_000;
/** What a restart or a failover may lose: the last moments. */
const LOSS_MOST_MS = 2_000;
/** How far clocks are set. */
const STEP_CLIENT_MS = 3_600_000;
const STEP_STORE_MS = 40_000;
/** Clocks that disagree by less than this may be taken for such that agree. */
const HIDDEN_MS = 2_000;
/** Beyond the TTL: what the quarantine adds. */
const MARGIN_MS = 1_000;

/** Who is started again at once is started within this. */
const AT_ONCE_MOST_MS = 500;
/** The share of revocations that do not wait for the holder. */
const FORCED_SHARE = 0.3;

/** Who believes in what: of actions, that is about attempts at them, and nothing else; of slots, about pipelines. */
const VALIDITY = ['exclusion', 'actions', 'slots'] as const;
const anybody = () => true;

type Strike = (fault: Fault, seat: Seat) => void;

export class Nemesis {
  readonly #parts: NemesisParts;
  /** What puts right again what is wrong now. */
  readonly #cures = new Set<() => void>();
  /** By how much the store's clock was set back since all was well: so much longer may a dead owner's lease last. */
  #setBackMs = 0;
  /** The latest time that the store's clock has shown. */
  #latestWallMs = 0;
  /** Nothing is to go wrong: what would be put right later is put right at once. */
  #isResting = false;
  /** Takes out of the stream what waits to be started. */
  #loses: (() => void) | null = null;

  constructor(parts: NemesisParts) {
    this.#parts = parts;
  }

  strike(fault: Fault): void {
    const { seats, counters, trace } = this.#parts;
    const seat = seats[fault.seat];
    if (seat === undefined) return;
    this.#isResting = false;
    counters.add(`fault: ${fault.kind}`);
    const { forMs, point, seat: number } = fault;
    trace.note('nemesis', fault.kind, { seat: number, forMs: Math.round(forMs), point });
    this.#strikes[fault.kind](fault, seat);
  }

  /** Everything is put right. Gives by how much longer than usual it may take until all is well. */
  heal(): number {
    this.#isResting = true;
    for (const cure of [...this.#cures]) cure();
    for (const { process } of this.#parts.seats) if (process !== null) process.trap = null;
    for (const seat of this.#parts.seats) seat.start();
    this.#parts.trace.note('nemesis', 'rests');
    const longerMs = this.#setBackMs;
    this.#setBackMs = 0;
    // Who is frozen can not be thawed: that is waited for.
    const frozen = this.#parts.seats.map(({ process }) => process?.frozenForMs ?? 0);
    return longerMs + Math.max(...frozen, this.#parts.machine.frozenForMs);
  }

  readonly #strikes: Record<FaultKind, Strike> = {
    crash: ({ forMs }, seat) => {
      seat.kill();
      this.#later(forMs, () => seat.start());
    },
    'crash at': ({ forMs, point, size }, seat) =>
      this.#trap(seat, point, size, () => {
        seat.kill();
        this.#later(forMs, () => seat.start());
      }),
    stop: ({ forMs }, seat) => void seat.stop().then(() => this.#later(forMs, () => seat.start())),
    'late stop': ({ size }, seat) => {
      const ms = this.#parts.ttlMs * (0.9 + size);
      seat.process?.freeze(ms);
      this.#later(ms, () => {
        this.#parts.counters.add('stopped late');
        void seat.stop().then(() => this.#later(1_000, () => seat.start()));
      });
    },
    freeze: ({ forMs }, seat) => seat.process?.freeze(forMs),
    'freeze at': ({ forMs, point, size }, seat) =>
      this.#trap(seat, point, size, (process) => process.freeze(forMs)),
    sleep: ({ forMs }, seat) => {
      seat.host.sleep(forMs);
      this.#lookForHiddenSleep(seat);
    },
    'set clock': ({ size }, seat) => {
      seat.host.stepWall((size - 0.5) * 2 * STEP_CLIENT_MS);
      this.#lookForHiddenSleep(seat);
    },
    'set clock while cut': ({ size }, seat) => {
      this.#cut(seat, { out: true, back: true }, this.#parts.ttlMs * 1.5);
      seat.host.stepWall((size - 0.5) * 2 * STEP_CLIENT_MS);
      this.#lookForHiddenSleep(seat);
    },
    cut: ({ forMs }, seat) => this.#cut(seat, { out: true, back: true }, forMs),
    'cut out': ({ forMs }, seat) => this.#cut(seat, { out: true, back: false }, forMs),
    'cut back': ({ forMs }, seat) => this.#cut(seat, { out: false, back: true }, forMs),
    'late answers': ({ size }, seat) => {
      const lateMs = LATE_LEAST_MS + size * LATE_SPREAD_MS;
      this.#cut(seat, { out: false, back: true }, lateMs);
      // What has come back late has just been read when the way is cut for longer than a lease lasts.
      const cutMs = lateMs + LATE_READ_MS;
      this.#later(cutMs, () => this.#cut(seat, { out: true, back: true }, this.#parts.ttlMs * 1.5));
    },
    slow: ({ forMs, size }, { path }) => {
      path.slowMs = size * SLOW_MOST_MS;
      this.#later(forMs, () => {
        path.slowMs = 0;
      });
    },
    reset: (_, { path }) => path.breakOff(),
    'store freezes': ({ forMs }) => this.#parts.machine.freeze(Math.min(forMs, STORE_MOST_MS)),
    'store restarts empty': (fault) => this.#restart(fault, ({ redis }) => redis.restart('empty')),
    'store restarts': (fault) =>
      this.#restart(fault, ({ redis }) => redis.restart({ lostMs: 0 }), 'whole'),
    'store restarts with a loss': (fault) =>
      this.#restart(fault, ({ redis }) => redis.restart({ lostMs: fault.size * LOSS_MOST_MS })),
    failover: (fault) =>
      this.#restart(fault, ({ redis }) => redis.failover(fault.size * LOSS_MOST_MS)),
    flush: () => this.#flush(),
    'scripts are forgotten': () => this.#parts.machine.redis.flushScripts(),
    'out of memory': ({ forMs }) => {
      const { redis } = this.#parts.machine;
      redis.isOutOfMemory = true;
      this.#later(Math.min(forMs, STORE_MOST_MS), () => {
        redis.isOutOfMemory = false;
      });
    },
    'keys are deleted': ({ size }) => this.#delete(size),
    'store clock is set': ({ size }) => this.#setStoreClock((size - 0.5) * 2 * STEP_STORE_MS),
    revoke: ({ size }, { instance }) => instance?.revoke(size, size < FORCED_SHARE),
    transfer: ({ size }, { instance }) => instance?.transfer(size),
    'starts are lost': ({ forMs, size }) => this.#loseStarts(forMs, size),
    restart: ({ size }, seat) => {
      seat.kill();
      this.#later(size * AT_ONCE_MOST_MS, () => seat.start());
    },
  };

  /** A clock that was set back while its host slept shows less of it, or nothing: nobody can notice that. */
  #lookForHiddenSleep({ host, process }: Seat): void {
    const { audit, timeline, ttlMs } = this.#parts;
    const { nowMs } = timeline;
    if (!host.hidesSleep(nowMs - 2 * ttlMs, HIDDEN_MS)) return;
    const concerns = (one: SimProcess) => one === process;
    audit.excuse({ invariants: VALIDITY, untilMs: nowMs + 4 * ttlMs, concerns });
  }

  #restart(
    { forMs }: Fault,
    come: (machine: Machine) => void,
    data: 'whole' | 'less' = 'less',
  ): void {
    const { machine, audit } = this.#parts;
    if (machine.isDown) return;
    machine.goDown();
    this.#later(Math.min(forMs, STORE_MOST_MS), () => {
      come(machine);
      if (data === 'whole') audit.storeForgot();
      else this.#forget();
      machine.isDown = false;
    });
  }

  /**
   * No process that remembers the store is asked before one that does not: a newcomer takes it for a new one. That can
   * not be noticed in time.
   */
  #flush(): void {
    const { machine, audit, timeline, ttlMs, seats } = this.#parts;
    const flushedMs = timeline.nowMs;
    machine.redis.flush();
    this.#forget({ isSilent: true });
    const isNew = (process: SimProcess) =>
      seats.some(
        ({ instance }) => instance?.process === process && instance.knowsSinceMs >= flushedMs,
      );
    const untilMs = flushedMs + 2 * (ttlMs + MARGIN_MS);
    audit.excuse({ invariants: ['exclusion', 'slots'], untilMs, concerns: isNew });
  }

  /** Who deletes a lease frees it under its holder, who finds out with its next renewal. */
  #delete(share: number): void {
    const { machine, audit, timeline, random, ttlMs } = this.#parts;
    machine.redis.lose(() => random.next() < share);
    audit.storeForgot({ isTorn: true, isSilent: true });
    const untilMs = timeline.nowMs + ttlMs + MARGIN_MS;
    audit.excuse({ invariants: VALIDITY, untilMs, concerns: anybody });
  }

  /** A script was carried out. */
  served(verb: string): void {
    if (verb === 'start' && this.#loses !== null) this.#loses();
  }

  /** For a while, whatever is put there: a moment later a worker has it. */
  #loseStarts(forMs: number, choice: number): void {
    const { machine, audit } = this.#parts;
    const lose = () => audit.intents?.startsLost(loseStarts((args) => machine.peek(args), choice));
    this.#loses = lose;
    this.#later(forMs, () => {
      if (this.#loses === lose) this.#loses = null;
    });
  }

  /** What was in a processor's hands may be in nobody's, and be given to another: there is no quarantine for it. */
  #forget(how: { isSilent?: boolean } = {}): void {
    const { audit, timeline, ttlMs } = this.#parts;
    audit.storeForgot(how);
    const untilMs = timeline.nowMs + ttlMs * CLAIM_SHARE + MARGIN_MS;
    audit.excuse({ invariants: ['actions'], untilMs, concerns: anybody });
  }

  /** Forward, leases expire early. Backward, they last longer; and with a loss of data, fences may come again. */
  #setStoreClock(ms: number): void {
    const { audit, timeline, ttlMs } = this.#parts;
    const { host } = this.#parts.machine;
    const { nowMs } = timeline;
    this.#latestWallMs = Math.max(this.#latestWallMs, host.wallMs(nowMs));
    host.stepWall(ms);
    const behindMs = this.#latestWallMs - host.wallMs(nowMs);
    this.#setBackMs += Math.max(0, -ms);
    if (ms < 0) audit.workers?.setBack(-ms);
    const untilMs = nowMs + ttlMs + MARGIN_MS;
    if (ms > 0) audit.excuse({ invariants: VALIDITY, untilMs, concerns: anybody });
    if (behindMs > 0)
      audit.excuse({ invariants: ['grants', 'tenures'], untilMs: nowMs + behindMs + MARGIN_MS });
  }

  #cut({ path }: Seat, how: { out: boolean; back: boolean }, forMs: number): void {
    path.cut(how);
    this.#later(forMs, () => path.cut({ out: false, back: false }));
  }

  #trap(seat: Seat, point: string, size: number, spring: (process: SimProcess) => void): void {
    const { process } = seat;
    if (process === null) return;
    const { counters, trace } = this.#parts;
    const caught = () => {
      counters.add(`caught at: ${point}`);
      trace.note(process.name, 'caught', { point });
      spring(process);
    };
    process.trap = { point, passes: Math.floor(size * 4), spring: caught };
  }

  /** After a while, or when everything is put right. */
  #later(ms: number, run: () => void): void {
    if (this.#isResting) {
      run();
      return;
    }
    const { timeline } = this.#parts;
    const cure = () => {
      if (!this.#cures.delete(cure)) return;
      timeline.takeBack(planned);
      run();
    };
    const planned = timeline.at(timeline.nowMs + ms, cure, PHASE.observer);
    this.#cures.add(cure);
  }
}
