/** Makes things go wrong as planned, and right again. */
import type { Random } from '../../src/core/random.ts';
import type { Audit } from './audit.ts';
import type { Counters } from './counters.ts';
import { Cures } from './cures.ts';
import type { Fault, FaultKind } from './faults.ts';
import type { SimProcess } from './host.ts';
import type { SimInstance } from './instance.ts';
import { loseStarts } from './intent-sight.ts';
import type { Machine } from './machine.ts';
import { type Seat as AnySeat, trap } from './seat.ts';
import type { Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';
import { CLAIM_SHARE } from './workflow-crew.ts';

type Seat = AnySeat<SimInstance>;

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
/**
 * Late answers come before their caller has abandoned them, but later than the guard of a lease
 * allows for.
 */
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
/** Of the TTL: the longest cut after which the owner of a paused target still has it. */
const KEPT_SHARE = 0.6;
/** Of a cut: when a target that was paused is resumed. */
const RESUMED_SHARE = 0.8;
/** A worker that is replaced has up to so long to stop: some of what it runs takes longer. */
const REPLACED_MOST_MS = 1_000;
/** The share of revocations that do not wait for the holder. */
const FORCED_SHARE = 0.3;

/**
 * Who believes in what: of actions, that is about attempts at them, and nothing else; of slots,
 * about pipelines.
 */
const VALIDITY = ['exclusion', 'actions', 'slots'] as const;
const anybody = () => true;

type Strike = (fault: Fault, seat: Seat) => void;

export class Nemesis {
  readonly #parts: NemesisParts;
  readonly #cures: Cures;
  /**
   * By how much the store's clock was set back since all was well: so much longer may a dead
   * owner's lease last.
   */
  #setBackMs = 0;
  /** The latest time that the store's clock has shown. */
  #latestWallMs = 0;
  /** When something last went wrong, or was put right. */
  #noisyAtMs = 0;
  /** Takes out of the stream what waits to be started. */
  #loses: (() => void) | null = null;

  constructor(parts: NemesisParts) {
    this.#parts = parts;
    this.#cures = new Cures(parts.timeline, () => this.#makeNoise());
  }

  /** For how long nothing has been wrong. */
  get quietForMs(): number {
    const { nowMs } = this.#parts.timeline;
    return this.#cures.size > 0 ? 0 : Math.max(0, nowMs - this.#noisyAtMs);
  }

  /** Something goes wrong now, or is put right. A frozen process thaws later. */
  #makeNoise(): void {
    const { seats, machine, timeline } = this.#parts;
    const frozen = seats.map(({ process }) => process?.frozenForMs ?? 0);
    const untilMs = timeline.nowMs + Math.max(...frozen, machine.frozenForMs);
    this.#noisyAtMs = Math.max(this.#noisyAtMs, untilMs);
  }

  strike(fault: Fault): void {
    const { seats, counters, trace } = this.#parts;
    const seat = seats[fault.seat];
    if (seat === undefined) return;
    this.#cures.resume();
    counters.add(`fault: ${fault.kind}`);
    const { forMs, point, seat: number } = fault;
    trace.note('nemesis', fault.kind, { seat: number, forMs: Math.round(forMs), point });
    this.#strikes[fault.kind](fault, seat);
    this.#makeNoise();
  }

  /** Everything is put right. Gives by how much longer than usual it may take until all is well. */
  heal(): number {
    this.#cures.rest();
    for (const { process, instance } of this.#parts.seats) {
      if (process !== null) process.trap = null;
      instance?.rest();
    }
    for (const seat of this.#parts.seats) {
      seat.start();
      void seat.instance?.restoreTargets();
    }
    this.#makeNoise();
    this.#parts.trace.note('nemesis', 'rests');
    const longerMs = this.#setBackMs;
    this.#setBackMs = 0;
    // A frozen process cannot be thawed early: wait for it.
    const frozen = this.#parts.seats.map(({ process }) => process?.frozenForMs ?? 0);
    return longerMs + Math.max(...frozen, this.#parts.machine.frozenForMs);
  }

  readonly #strikes: Record<FaultKind, Strike> = {
    crash: ({ forMs }, seat) => {
      seat.kill();
      this.#cures.later(forMs, () => seat.start());
    },
    'crash at': ({ forMs, point, size }, seat) =>
      this.#trap(seat, point, size, () => {
        seat.kill();
        this.#cures.later(forMs, () => seat.start());
      }),
    stop: ({ forMs }, seat) =>
      void seat.stop().then(() => this.#cures.later(forMs, () => seat.start())),
    'late stop': ({ size }, seat) => {
      const ms = this.#parts.ttlMs * (0.9 + size);
      seat.process?.freeze(ms);
      this.#cures.later(ms, () => {
        this.#parts.counters.add('stopped late');
        void seat.stop().then(() => this.#cures.later(1_000, () => seat.start()));
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
      // What has come back late has just been read when the way is cut for longer than a lease
      // lasts.
      const cutMs = lateMs + LATE_READ_MS;
      this.#cures.later(cutMs, () =>
        this.#cut(seat, { out: true, back: true }, this.#parts.ttlMs * 1.5),
      );
    },
    slow: ({ forMs, size }, { path }) => {
      path.slowMs = size * SLOW_MOST_MS;
      this.#cures.later(forMs, () => {
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
      this.#cures.later(Math.min(forMs, STORE_MOST_MS), () => {
        redis.isOutOfMemory = false;
      });
    },
    'keys are deleted': ({ size }) => this.#delete(size),
    'store clock is set': ({ size }) => this.#setStoreClock((size - 0.5) * 2 * STEP_STORE_MS),
    revoke: ({ size }, { instance }) => instance?.revoke(size, size < FORCED_SHARE),
    transfer: ({ size }, { instance }) => instance?.transfer(size),
    pause: ({ forMs, size }, { instance }) => {
      const target = instance?.pause(size) ?? null;
      if (target !== null) this.#cures.later(forMs, () => this.#resume(target));
    },
    'pause while cut': ({ forMs, size }, seat) => {
      const others = this.#parts.seats.filter((other) => other !== seat);
      const operator = others[Math.floor(size * others.length)]?.instance ?? null;
      const owned = seat.instance?.owned() ?? [];
      const target = owned[Math.floor(size * owned.length)];
      if (operator === null || target === undefined) return;
      operator.pause(0, target);
      const cutMs = Math.min(forMs, this.#parts.ttlMs * KEPT_SHARE);
      this.#trap(seat, 'lease/read', 0, () => {
        this.#cut(seat, { out: true, back: true }, cutMs);
        this.#cures.later(cutMs * RESUMED_SHARE, () => this.#resume(target));
      });
      this.#cures.later(this.#parts.ttlMs, () => this.#resume(target));
    },
    'starts are lost': ({ forMs, size }) => this.#loseStarts(forMs, size),
    restart: ({ size }, seat) => {
      seat.kill();
      this.#cures.later(size * AT_ONCE_MOST_MS, () => seat.start());
    },
    'worker is replaced': ({ size }, { instance }) =>
      instance?.replaceWorker(size * REPLACED_MOST_MS),
  };

  /**
   * A clock that was set back while its host slept shows less of it, or nothing: nobody can notice
   * that.
   */
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
    this.#cures.later(Math.min(forMs, STORE_MOST_MS), () => {
      come(machine);
      if (data === 'whole') audit.storeForgot();
      else this.#forget();
      machine.isDown = false;
    });
  }

  /**
   * No process that remembers the store is asked before one that does not: a newcomer takes it for
   * a new one. That cannot be noticed in time.
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
    if (verb === 'intent/start' && this.#loses !== null) this.#loses();
  }

  /** For a while, whatever is put there: a moment later a worker has it. */
  #loseStarts(forMs: number, choice: number): void {
    const { machine, audit } = this.#parts;
    const lose = () => audit.intents?.startsLost(loseStarts((args) => machine.peek(args), choice));
    this.#loses = lose;
    this.#cures.later(forMs, () => {
      if (this.#loses === lose) this.#loses = null;
    });
  }

  /**
   * What was in a processor's hands may be in nobody's, and be given to another: there is no
   * quarantine for it.
   */
  #forget(how: { isSilent?: boolean } = {}): void {
    const { audit, timeline, ttlMs } = this.#parts;
    audit.storeForgot(how);
    const untilMs = timeline.nowMs + ttlMs * CLAIM_SHARE + MARGIN_MS;
    audit.excuse({ invariants: ['actions'], untilMs, concerns: anybody });
  }

  /**
   * Forward, leases expire early. Backward, they last longer; and with a loss of data, fences may
   * come again.
   */
  #setStoreClock(ms: number): void {
    const { audit, timeline, ttlMs } = this.#parts;
    const { host } = this.#parts.machine;
    const { nowMs } = timeline;
    this.#latestWallMs = Math.max(this.#latestWallMs, host.wallMs(nowMs));
    host.stepWall(ms);
    audit.model?.clockSet(ms);
    const behindMs = this.#latestWallMs - host.wallMs(nowMs);
    this.#setBackMs += Math.max(0, -ms);
    if (ms < 0) audit.workers?.setBack(-ms);
    const untilMs = nowMs + ttlMs + MARGIN_MS;
    if (ms > 0) audit.excuse({ invariants: VALIDITY, untilMs, concerns: anybody });
    if (behindMs > 0)
      audit.excuse({ invariants: ['grants', 'tenures'], untilMs: nowMs + behindMs + MARGIN_MS });
  }

  /** By any live instance. */
  #resume(target: string): void {
    for (const { instance } of this.#parts.seats) instance?.resume(target);
  }

  #cut({ path }: Seat, how: { out: boolean; back: boolean }, forMs: number): void {
    path.cut(how);
    this.#cures.later(forMs, () => path.cut({ out: false, back: false }));
  }

  #trap(seat: Seat, point: string, size: number, spring: (process: SimProcess) => void): void {
    const sprung = (process: SimProcess) => {
      spring(process);
      this.#makeNoise();
    };
    trap(seat, { point, passes: Math.floor(size * 4), ...this.#parts, spring: sprung });
  }
}
