/** Makes things go wrong in a mixed world as planned, and right again. */

import type { Random } from '../../src/core/random.ts';
import type { Address } from './address.ts';
import type { Believers } from './believers.ts';
import type { Counters } from './counters.ts';
import { Cures } from './cures.ts';
import type { Machine } from './machine.ts';
import type { MixedClient } from './mixed-client.ts';
import type { MixedFault, MixedKind } from './mixed-faults.ts';
import type { MixedSetting } from './mixed-setting.ts';
import { type Seat as AnySeat, trap } from './seat.ts';
import { PHASE, type Timeline } from './timeline.ts';
import type { Trace } from './trace.ts';
import type { WorkAudit } from './work-audit.ts';

type Seat = AnySeat<MixedClient>;

export interface MixedNemesisParts {
  readonly timeline: Timeline;
  readonly seats: readonly Seat[];
  readonly setting: MixedSetting;
  readonly address: Address;
  readonly believers: Believers;
  readonly work: WorkAudit;
  /** By how much a clock that drifts may be off. */
  readonly drift: number;
  readonly random: Random;
  readonly counters: Counters;
  readonly trace: Trace;
}

const SLOW_MOST_MS = 700;
/** How long a server is away when it restarts, in bounds, and what it may lose. */
const DOWN_BOUNDS = 0.4;
const LOSS_MOST_MS = 2_000;
/** How far a store's clock is ahead in worlds where it is; and how far it is set in others. */
export const AHEAD_MS = 3_600_000;
const STEP_MOST_MS = 40_000;
/** A newcomer stays for this many bounds. */
const NEWCOMER_BOUNDS = 2;
/** Waiters stay frozen for this many bounds; the key is released so soon after. */
const FROZEN_BOUNDS = 1.5;
const LET_GO_AFTER_MS = 50;
/** While there are not enough waiters, it is tried again. */
const WAITERS_AGAIN_MS = 500;
const WAITERS_TRIES = 120;
/** The share of orders of an operator that are held up on their way. */
const LATE_ORDER_SHARE = 0.6;
/**
 * The share of failovers to a server that never saw the data: an address that was pointed to the
 * wrong one.
 */
const BLANK_SHARE = 0.2;
/** How late the replies of one connection are at most, and how late a request is repeated. */
const LATE_REPLY_MOST_MS = 1_500;
const REPEAT_BOUNDS = 0.4;
const DOUBLES_SHARE = 0.3;
/** A client finds out within this time that a connection of its is silent. */
const SILENT_MOST_MS = 13_000;
/** A clock beyond the guard is this much slower: from one share to the other. */
const BEYOND = [0.01, 0.12] as const;
/** The share of connections that end when a name leads elsewhere. */
const RECONNECTS_SHARE = 0.4;

/** It disturbs neither the store nor the way to it. */
const QUIET: MixedKind = 'waiters freeze';

type Strike = (fault: MixedFault, seat: Seat) => void;

export class MixedNemesis {
  readonly #parts: MixedNemesisParts;
  readonly #cures: Cures;
  #disturbedMs = 0;
  #isSetBack = false;
  #isSplit = false;
  #isAway = false;

  constructor(parts: MixedNemesisParts) {
    this.#parts = parts;
    this.#cures = new Cures(parts.timeline);
  }

  /** When the store, or the way to it, was last disturbed. */
  get disturbedMs(): number {
    return this.#disturbedMs;
  }

  /** The store's clock was set back: what a dead client left behind lasts for longer by as much. */
  get isSetBack(): boolean {
    return this.#isSetBack;
  }

  /** The name of the store has moved, and the server before still answers. */
  get isSplit(): boolean {
    return this.#isSplit;
  }

  strike(fault: MixedFault): void {
    const { seats, counters, trace } = this.#parts;
    const seat = seats[fault.seat];
    if (seat === undefined) return;
    this.#cures.resume();
    counters.add(`fault: ${fault.kind}`);
    const { forMs, point, seat: number } = fault;
    trace.note('nemesis', fault.kind, { seat: number, forMs: Math.round(forMs), point });
    if (fault.kind !== QUIET) this.#disturb();
    this.#strikes[fault.kind](fault, seat);
  }

  /** Everything is put right. Gives for how long a client or the store is frozen yet. */
  heal(): number {
    const { seats, setting, address, trace } = this.#parts;
    this.#cures.rest();
    this.#disturb();
    for (const [number, seat] of seats.entries()) {
      if (seat.process !== null) seat.process.trap = null;
      if (!setting.clients[number]?.isNewcomer) seat.start();
    }
    trace.note('nemesis', 'rests');
    const frozen = seats.map(({ process }) => process?.frozenForMs ?? 0);
    return Math.max(...frozen, address.machine.frozenForMs);
  }

  readonly #strikes: Record<MixedKind, Strike> = {
    crash: ({ forMs }, seat) => this.#end(seat, forMs),
    stop: ({ forMs }, seat) => void seat.stop().then(() => this.#startLater(seat, forMs)),
    freeze: ({ forMs }, seat) => seat.process?.freeze(forMs),
    'freeze at': ({ forMs, point, size }, seat) =>
      trap(seat, {
        point,
        passes: Math.floor(size * 4),
        ...this.#parts,
        spring: (process) => process.freeze(forMs),
      }),
    sleep: ({ forMs }, seat) => seat.host.sleep(forMs),
    cut: ({ forMs }, seat) => this.#cut(seat, { out: true, back: true }, forMs),
    'cut out': ({ forMs }, seat) => this.#cut(seat, { out: true, back: false }, forMs),
    'cut back': ({ forMs }, seat) => this.#cut(seat, { out: false, back: true }, forMs),
    reset: (_, { path }) => path.breakOff(),
    slow: ({ forMs, size }, { path }) => {
      path.slowMs = size * SLOW_MOST_MS;
      this.#later(forMs, () => {
        path.slowMs = 0;
      });
    },
    flush: () => {
      this.#parts.address.machine.redis.flush();
      this.#lost('flush', 'emptied');
    },
    'empty restart': ({ size }) =>
      this.#restart(size, ({ redis }) => redis.restart('empty'), 'empty restart'),
    'restart with data': ({ size }) =>
      this.#restart(
        size,
        ({ redis }) => redis.restart({ lostMs: size < 0.5 ? 0 : size * LOSS_MOST_MS }),
        'restart with data',
      ),
    failover: ({ size }) =>
      this.#restart(size, ({ redis }) => redis.failover(size * LOSS_MOST_MS), 'failover'),
    'address moves': ({ size }) => this.#failOver(size),
    'address moves back': () => this.#failBack(),
    'holder is cut off': ({ forMs, seat: number }) => this.#cutOffHolder(number, forMs),
    'holder is held up': ({ forMs, seat: number }) => this.#holdUp(number, forMs),
    newcomer: () => this.#newcomer(),
    'waiters freeze': () => this.#freezeWaiters(WAITERS_TRIES),
    revoke: ({ forMs, size }, seat) => this.#revoke(seat, { forMs, size }),
    'store clock is set': ({ size }) => this.#setClock((size - 0.5) * 2 * STEP_MOST_MS),
    'store clock is set right': () => {
      if (!this.#isSetBack) this.#setClock(-AHEAD_MS);
    },
    'goes silent': ({ size, point }, { path }) => {
      path.linkAt(size)?.goSilent(point === 'clock' ? 'requests' : 'replies');
      // It stays silent; its client has to find out.
      this.#later(SILENT_MOST_MS, () => {});
    },
    'replies are late': ({ forMs, size }, { path }) => {
      const link = path.linkAt(size);
      link?.delayReplies(path.chance() * LATE_REPLY_MOST_MS);
      this.#later(forMs, () => link?.delayReplies(0));
    },
    'requests are doubled': ({ forMs }, { path }) => {
      path.doubles = {
        share: DOUBLES_SHARE,
        withinMs: REPEAT_BOUNDS * this.#parts.setting.boundMs,
      };
      this.#later(forMs, () => {
        path.doubles = { share: 0, withinMs: 0 };
      });
    },
    'no replies': ({ forMs }) => this.#cutAll({ out: false, back: true }, forMs),
    'no requests': ({ forMs }) => this.#cutAll({ out: true, back: false }, forMs),
    'half are not heard': ({ forMs }) => {
      for (const [number, seat] of this.#parts.seats.entries())
        if (number % 2 === 0) this.#cut(seat, { out: true, back: false }, forMs);
    },
    'disk full': ({ forMs }) => this.#refuseWrites('isDiskFull', forMs),
    'out of memory': ({ forMs }) => this.#refuseWrites('isOutOfMemory', forMs),
    'name moves': ({ forMs, size }) => this.#moveName(forMs, size),
    'clock rate changes': ({ size }, seat) => this.#changeRate(seat, size),
  };

  #disturb(): void {
    this.#disturbedMs = this.#parts.timeline.nowMs;
  }

  #later(ms: number, run: () => void): void {
    this.#cures.later(ms, () => {
      this.#disturb();
      run();
    });
  }

  #end(seat: Seat, forMs: number): void {
    seat.kill();
    this.#startLater(seat, forMs);
  }

  /** A newcomer is started by its own fault alone. */
  #startLater(seat: Seat, forMs: number): void {
    const { seats, setting } = this.#parts;
    if (setting.clients[seats.indexOf(seat)]?.isNewcomer) return;
    this.#later(forMs, () => seat.start());
  }

  #cut({ path }: Seat, how: { out: boolean; back: boolean }, forMs: number): void {
    path.cut(how);
    this.#later(forMs, () => path.cut({ out: false, back: false }));
  }

  #cutAll(how: { out: boolean; back: boolean }, forMs: number): void {
    for (const seat of this.#parts.seats) this.#cut(seat, how, forMs);
  }

  #refuseWrites(why: 'isDiskFull' | 'isOutOfMemory', forMs: number): void {
    const { redis } = this.#parts.address.machine;
    redis[why] = true;
    this.#later(forMs, () => {
      redis[why] = false;
    });
  }

  /**
   * The name of the store leads to the other server, which has followed the first one until now.
   * That one still answers those who are connected to it, and some connections end.
   */
  #moveName(forMs: number, size: number): void {
    const { address, believers, seats, counters } = this.#parts;
    if (address.machine.isDown || this.#isSplit) return;
    address.other.redis.promoteAsReplicaOf(address.machine.redis);
    address.moveName();
    this.#isSplit = true;
    this.#parts.work.isSplit = true;
    this.#lost('name moved', 'noticeable');
    const endSplit = believers.split(forMs);
    for (const [number, { path }] of seats.entries())
      for (const link of path.links)
        if ((size + number * RECONNECTS_SHARE + path.chance()) % 1 < RECONNECTS_SHARE)
          link.breakOff();
    counters.add('two servers answered');
    this.#later(forMs, () => {
      this.#isSplit = false;
      this.#parts.work.isSplit = false;
      address.leave();
      endSplit();
      this.#lost('old server ended', 'noticeable');
    });
  }

  /** A clock runs faster or slower, within what every guard covers or beyond it. */
  #changeRate({ host, process }: Seat, size: number): void {
    const { setting, drift, random, counters } = this.#parts;
    if (process?.isFrozen) return;
    counters.add('clock rate changed');
    if (setting.draw['clock rates'] !== 'beyond the guard') {
      host.setRate(1 + (size - 0.5) * 2 * drift);
      return;
    }
    const [least, most] = BEYOND;
    host.setRate(1 - least - random.next() * (most - least));
    counters.add('clock rate changed beyond the guard');
  }

  #lost(kind: string, how: 'noticeable' | 'emptied' | 'returned', sinceMs = 0): void {
    const { believers, counters } = this.#parts;
    believers.lost(how, sinceMs);
    this.#parts.work.excuse();
    counters.add(`loss: ${kind}`);
    if (this.#parts.seats.some(({ path }) => path.isCutOut && path.isCutBack))
      counters.add('lost while a client was cut off');
  }

  #restart(size: number, come: (machine: Machine) => void, kind: string): void {
    const { address, setting } = this.#parts;
    const { machine } = address;
    if (machine.isDown) return;
    machine.goDown();
    this.#later(size * DOWN_BOUNDS * setting.boundMs, () => {
      machine.goDown();
      come(machine);
      this.#lost(kind, 'noticeable');
      if (address.machine === machine) machine.isDown = false;
    });
  }

  /**
   * The other server takes over: with the data of a moment ago, or, where it never had any, with
   * none.
   */
  #failOver(size: number): void {
    const { address } = this.#parts;
    const isBlank = !address.isOtherUsed && size < BLANK_SHARE;
    if (!isBlank) address.other.redis.promoteAsReplicaOf(address.machine.redis);
    this.#cures.later(size * LOSS_MOST_MS, () => {
      address.move();
      this.#isAway = true;
      this.#disturb();
      this.#lost('failover to the other', isBlank ? 'emptied' : 'noticeable');
    });
  }

  #failBack(): void {
    const { address } = this.#parts;
    const { sinceMs, isOtherUsed } = address;
    // The address has not moved yet: there is nothing to move back from.
    if (!this.#isAway) return;
    this.#isAway = false;
    address.move();
    this.#lost('failback', isOtherUsed ? 'returned' : 'emptied', sinceMs);
  }

  /** The holder with the longest TTL: what it believes in outlasts the memory of others. */
  #cutOffHolder(number: number, forMs: number): void {
    const { seats, believers, counters } = this.#parts;
    const holder = believers.longest()?.process;
    const seat = seats.find(({ process }) => process === holder && holder !== undefined);
    if (seat !== undefined) counters.add('holder cut off');
    const chosen = seat ?? seats[number];
    if (chosen !== undefined) this.#cut(chosen, { out: true, back: true }, forMs);
  }

  /**
   * What the client that uses both a short and the longest TTL sends lies on its way until the cut
   * is over.
   */
  #holdUp(number: number, forMs: number): void {
    const { seats, setting } = this.#parts;
    const { boundMs, clients } = setting;
    const isBoth = ({ ttlsMs }: { ttlsMs: readonly number[] }) =>
      ttlsMs.includes(boundMs) && ttlsMs.some((ttlMs) => ttlMs < boundMs);
    const seat = seats[clients.findIndex(isBoth)] ?? seats[number];
    if (seat !== undefined) this.#cut(seat, { out: true, back: false }, forMs);
  }

  #newcomer(): void {
    const { seats, setting } = this.#parts;
    const seat = seats.find(
      ({ process }, number) => setting.clients[number]?.isNewcomer && process === null,
    );
    if (seat === undefined) return;
    seat.start();
    this.#parts.counters.add('newcomer');
    this.#later(NEWCOMER_BOUNDS * setting.boundMs, () => seat.kill());
  }

  /**
   * Freezes those who have waited longest for a key, and has its holder let go while another one
   * waits.
   */
  #freezeWaiters(tries: number): void {
    const { timeline, setting, counters } = this.#parts;
    const isTwo = setting.draw['frozen waiters'] === 'the first two';
    const found = this.#keyWithWaiters(isTwo ? 3 : 2);
    if (found === null) {
      const again = () => this.#freezeWaiters(tries - 1);
      if (tries > 0) timeline.at(timeline.nowMs + WAITERS_AGAIN_MS, again, PHASE.observer);
      return;
    }
    const { storeKey, holder, waiters } = found;
    for (const { process } of waiters.slice(0, isTwo ? 2 : 1))
      process.freeze(FROZEN_BOUNDS * setting.boundMs);
    const letGo = () => {
      if (!holder.letGo(storeKey)) return;
      counters.add(`waiters frozen: ${setting.draw['frozen waiters']}`);
    };
    timeline.at(timeline.nowMs + LET_GO_AFTER_MS, () => holder.process.deliver(letGo));
  }

  #keyWithWaiters(
    least: number,
  ): { storeKey: string; holder: MixedClient; waiters: MixedClient[] } | null {
    const { seats, believers } = this.#parts;
    const clients = seats.flatMap(({ instance }) => instance ?? []);
    for (const storeKey of new Set(clients.flatMap((client) => client.storeKeys))) {
      const [holding] = believers.of(storeKey);
      const holder = clients.find(({ process }) => process === holding);
      const waiters = clients
        .filter((one) => one.waitsSinceMs(storeKey) !== undefined && !one.process.isFrozen)
        .sort((a, b) => (a.waitsSinceMs(storeKey) ?? 0) - (b.waitsSinceMs(storeKey) ?? 0));
      if (holder !== undefined && waiters.length >= least) return { storeKey, holder, waiters };
    }
    return null;
  }

  #revoke(seat: Seat, { forMs, size }: Pick<MixedFault, 'forMs' | 'size'>): void {
    const { process, instance } = seat;
    if (process === null || instance === null) return;
    // The operator has looked; the order itself is held up on its way.
    const spring = () => this.#cut(seat, { out: true, back: true }, forMs);
    if (size < LATE_ORDER_SHARE) process.trap = { point: 'lease/revoke', passes: 0, spring };
    const isForced = this.#parts.setting.draw.operator === 'revokes by force';
    void instance.revoke(isForced).catch(() => {});
  }

  #setClock(ms: number): void {
    const { address, believers, counters } = this.#parts;
    address.machine.host.stepWall(ms);
    believers.clockSet(ms);
    this.#parts.work.excuse();
    counters.add('store clock set');
    if (ms < 0) this.#isSetBack = true;
  }
}
