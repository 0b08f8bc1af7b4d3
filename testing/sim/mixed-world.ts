/**
 * A world of clients that share keys of one store, each with its own TTLs, guards, classes and
 * options. There is no fleet in it: it looks for what combinations of configurations and losses of
 * data do to leases themselves.
 */
import { seededRandom } from '../../src/core/random.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import { Address } from './address.ts';
import { Audit } from './audit.ts';
import { Believers } from './believers.ts';
import { Counters } from './counters.ts';
import { SimHost, type SimProcess } from './host.ts';
import { Machine, type Witness } from './machine.ts';
import { MixedClient } from './mixed-client.ts';
import { type MixedEpisode, planMixed, shortestMixedEpisodeMs } from './mixed-faults.ts';
import { AHEAD_MS, MixedNemesis } from './mixed-nemesis.ts';
import { type Dimension, drawSetting, type MixedSetting } from './mixed-setting.ts';
import { PER_BOUNDS } from './mixed-work.ts';
import type { ModelAudit } from './model-audit.ts';
import { verbOf } from './network.ts';
import { countPairs } from './pairs.ts';
import { mixed, Seat } from './seat.ts';
import { PHASE, Timeline } from './timeline.ts';
import { Trace } from './trace.ts';
import { WorkAudit } from './work-audit.ts';
import type { WorldReport } from './world.ts';
import { runWorld, Stop } from './world-run.ts';

export interface MixedOptions {
  readonly seed: number;
  readonly hours: number;
  readonly episodes?: readonly MixedEpisode[];
}

const HOUR_MS = 3_600_000;
/** Clocks run this much faster or slower at most. */
const DRIFT = 0.001;
/** Where their rate changes, it does by this much: a guard of a hundredth is enough for two. */
const CHANGING_DRIFT = 0.0045;
/** Of the time between two runs of a job, in bounds: its tolerance, and a lease. */
const BETWEEN_RUNS = 0.55;
/** What the quarantine adds to the bound. */
const MARGIN_MS = 1_000;
/** How long a key may lie free while a client that is well waits for it. */
const IDLE_MOST_MS = 5_000;
/** So long a client has been well before that counts. */
const WELL_SINCE_MS = 2_000;
const LOOK_EVERY_MS = 500;
/** A waiter asks at the expiry that it saw, or after this. */
const BACKSTOP_MS = 30_000;
/** How the name ends under which a key is kept. */
const KEPT = ' (kept)';

export class MixedWorld {
  readonly #options: MixedOptions;
  readonly #setting: MixedSetting;
  readonly #timeline = new Timeline();
  readonly #counters = new Counters();
  readonly #trace: Trace;
  readonly #audit: Audit;
  readonly #believers: Believers;
  readonly #work: WorkAudit;
  readonly #address: Address;
  readonly #seats: readonly Seat<MixedClient>[];
  readonly #nemesis: MixedNemesis;
  readonly #episodes: readonly MixedEpisode[];
  /** Since when each key lies free while a client waits for it. */
  readonly #idleSinceMs = new Map<string, number>();
  /** Keys that are freed by an expiry that waiters may not have seen; until when they may not. */
  readonly #handovers = new Map<string, { untilMs: number; isAlone(): boolean }>();
  /** When the last quarantine that a client has heard of is over. */
  #grantsFromMs = 0;
  #episode = 0;

  constructor(options: MixedOptions) {
    const { seed, hours } = options;
    const timeline = this.#timeline;
    const nowMs = () => timeline.nowMs;
    const setting = drawSetting(seededRandom(mixed(seed, 21)), seededRandom(mixed(seed, 26)));
    const { boundMs, draw } = setting;
    const random = seededRandom(mixed(seed, 22));
    const drift = () => 1 + (random.next() - 0.5) * 2 * DRIFT;
    this.#options = options;
    this.#setting = setting;
    this.#trace = new Trace(nowMs);
    this.#audit = new Audit(nowMs, this.#counters);
    const [counters, trace, audit] = [this.#counters, this.#trace, this.#audit];
    const isAhead = draw['store clock'] === 'ahead, then set right';
    const host = new SimHost(timeline, { rate: drift(), wallOffsetMs: isAhead ? AHEAD_MS : 0 });
    this.#believers = new Believers({
      nowMs,
      counters,
      boundMs,
      model: this.#watchModel(),
      storeHost: host,
      report: (invariant, key, text) => void audit.report(invariant, nameOf(key), text),
    });
    const server = (stream: number) => {
      const random = seededRandom(mixed(seed, stream));
      const witness: Witness = (args, reply, by) => this.#witness(args, reply, by, stream);
      return new Machine(timeline, random, witness, host);
    };
    this.#address = new Address(nowMs, [server(23), server(24)]);
    this.#work = new WorkAudit({
      timeline,
      counters,
      leastDistanceMs: boundMs * PER_BOUNDS * BETWEEN_RUNS - boundMs / 2,
      peek: (record) => this.#peek(record),
      report: (invariant, subject, text) => void audit.report(invariant, nameOf(subject), text),
    });
    this.#seats = setting.clients.map((_, number) => this.#seat(number, drift()));
    this.#nemesis = new MixedNemesis({
      timeline,
      setting,
      counters,
      trace,
      address: this.#address,
      believers: this.#believers,
      work: this.#work,
      drift: CHANGING_DRIFT,
      random: seededRandom(mixed(seed, 27)),
      seats: this.#seats,
    });
    const most = Math.ceil((hours * HOUR_MS) / shortestMixedEpisodeMs(boundMs));
    const planned = { random: seededRandom(mixed(seed, 25)), draw, boundMs, episodes: most };
    this.#episodes = options.episodes ?? planMixed({ ...planned, seats: this.#seats.length });
  }

  async run(): Promise<WorldReport> {
    await runWorld({
      timeline: this.#timeline,
      audit: this.#audit,
      settled: () => this.#believers.settled(),
      live: () => this.#live(),
    });
    countPairs(this.#setting.draw, this.#counters, (of) => this.#isReached(of));
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
      draw: this.#setting.draw,
    };
  }

  #seat(number: number, rate: number): Seat<MixedClient> {
    const setting = this.#setting;
    const { boundMs, clients } = setting;
    const [own, otherwise] = [clients[number], clients[0]];
    if (own === undefined || otherwise === undefined) throw new RangeError('a seat has a client');
    const address = this.#address;
    const common = { counters: this.#counters, trace: this.#trace };
    const onQuarantine = (leftMs: number) => {
      this.#grantsFromMs = Math.max(this.#grantsFromMs, this.#timeline.nowMs + leftMs);
    };
    const peers = () => this.#seats.flatMap(({ instance }) => instance?.work ?? []);
    const [audit, believers, work] = [this.#audit, this.#believers, this.#work];
    const judged = { ...common, audit, believers, work, peers, onQuarantine };
    return new Seat<MixedClient>({
      ...common,
      timeline: this.#timeline,
      seed: this.#options.seed,
      number,
      rate,
      make: (network) => new MixedClient({ ...judged, setting: own, otherwise, boundMs, network }),
      get machine() {
        return address.machine;
      },
    });
  }

  /** Clocks that are off by more than any guard: no rule of the model holds there. */
  #watchModel(): ModelAudit {
    const { boundMs, draw } = this.#setting;
    const rates = draw['clock rates'];
    const drift = rates === 'drifting' ? CHANGING_DRIFT + DRIFT / 2 : undefined;
    const model = this.#audit.watchModel(boundMs, drift);
    if (rates === 'beyond the guard') model.excuse(Number.POSITIVE_INFINITY);
    return model;
  }

  #peek(key: string): string | null {
    const reply = this.#address.machine.peek(['GET', key]);
    return typeof reply === 'string' ? reply : null;
  }

  #witness(args: readonly string[], reply: Reply, by: SimProcess, server: number): void {
    const verb = verbOf(args);
    this.#trace.mix(verb);
    this.#believers.served(by, server);
    if (reply instanceof ReplyError) this.#counters.add(`answered: ${reply.message.split(' ', 1)}`);
    else if (verb === 'server/examine' && !isRefusal(reply)) {
      this.#counters.add('examined');
      this.#believers.examined(by, server);
    } else if (verb === 'lease/acquire' && Array.isArray(reply)) {
      const granted = reply.filter((one) => typeof one === 'number');
      this.#believers.granted(by, granted, server);
      const { quarantine } = this.#setting.clients[this.#seatOf(by)] ?? {};
      if (granted.length > 0 && this.#believers.isEarly(by, quarantine === 'off', server))
        this.#audit.model?.excuse(2 * this.#setting.boundMs);
    }
    this.#audit.model?.served(args, reply);
    if (verb === 'lease/transfer' && Array.isArray(reply)) this.#handedOver(args, reply, by);
  }

  /**
   * Where no client claims it, or the client that keeps it has died, the key is freed by its
   * expiry: waiters wake at the one that they saw.
   */
  #handedOver(args: readonly string[], reply: readonly Reply[], by: SimProcess): void {
    const count = Number(args[2]);
    const given = args.slice(3 + count);
    const seenMs = Math.min(this.#setting.boundMs, BACKSTOP_MS) + MARGIN_MS;
    for (const [i, fence] of reply.entries()) {
      const [key, successor = ''] = [args[3 + i], given[5 + 4 * i]];
      if (typeof fence !== 'number' || key === undefined) continue;
      const isKept = successor.endsWith(KEPT);
      this.#counters.add(isKept ? 'kept' : 'handed over');
      const untilMs = this.#timeline.nowMs + Number(given[0]) + seenMs;
      this.#handovers.set(key, { untilMs, isAlone: () => !isKept || by.isDead });
    }
  }

  /** No client is told that this key is free. */
  #isUntold(key: string): boolean {
    const handover = this.#handovers.get(key);
    return handover !== undefined && this.#timeline.nowMs < handover.untilMs && handover.isAlone();
  }

  #seatOf(process: SimProcess): number {
    return this.#seats.findIndex((seat) => seat.process === process);
  }

  async #live(): Promise<void> {
    const timeline = this.#timeline;
    const { boundMs, clients } = this.#setting;
    for (const [number, seat] of this.#seats.entries())
      if (!clients[number]?.isNewcomer && !clients[number]?.isMisfit) seat.start();
    // The first use of a server that has just been started is a quarantine, too.
    await timeline.run(2 * boundMs + MARGIN_MS);
    this.#nemesis.heal();
    this.#look();
    for (const [number, { faults, lastsMs }] of this.#episodes.entries()) {
      this.#episode = number;
      const fromMs = timeline.nowMs;
      if (fromMs >= this.#options.hours * HOUR_MS) return;
      for (const fault of faults)
        timeline.at(fromMs + fault.atMs, () => this.#nemesis.strike(fault), PHASE.observer);
      await timeline.run(fromMs + lastsMs);
      await this.#checkHealed();
    }
  }

  /**
   * Once nothing is wrong any more, every key is granted again: after a quarantine, and what a dead
   * holder left behind.
   */
  async #checkHealed(): Promise<void> {
    const { boundMs } = this.#setting;
    const longerMs = this.#nemesis.heal();
    const grants = () =>
      new Map(this.#subjects().map((key) => [key, this.#counters.get(`granted: ${key}`)]));
    const before = grants();
    await this.#timeline.run(this.#timeline.nowMs + longerMs + 6 * boundMs + 10 * MARGIN_MS);
    if (this.#nemesis.isSetBack) this.#counters.add('not judged: healing after a clock set back');
    else
      for (const [key, count] of grants())
        if (count === (before.get(key) ?? 0))
          this.#audit.report('healing', nameOf(key), `no client is granted ${key}`);
    this.#counters.add('healed');
    if (this.#audit.violation !== null) throw new Stop();
  }

  #storeKeys(): string[] {
    return [...new Set(this.#seats.flatMap(({ instance }) => instance?.storeKeys ?? []))];
  }

  /** What is to be granted again: of a pool, any of its slots. */
  #subjects(): string[] {
    const all = this.#seats.flatMap(({ instance }) => instance?.work?.subjects ?? []);
    return [...new Set(all)];
  }

  /** From time to time: a key that lies free for long while a client that is well waits for it. */
  #look(): void {
    const timeline = this.#timeline;
    timeline.at(timeline.nowMs + LOOK_EVERY_MS, () => this.#look(), PHASE.observer);
    const { nowMs } = timeline;
    const calmMs = this.#nemesis.disturbedMs + this.#setting.boundMs + 2 * MARGIN_MS;
    const fromMs = Math.max(calmMs, this.#grantsFromMs + MARGIN_MS);
    for (const key of this.#storeKeys()) {
      // A client with other bounds is refused, and waits in vain.
      const waiter = this.#seats.find(
        (seat, number) => !this.#setting.clients[number]?.isMisfit && this.#isWell(seat, key),
      );
      const isTold = !this.#nemesis.isSplit && !this.#nemesis.isSetBack && !this.#isUntold(key);
      if (nowMs < fromMs || !isTold || waiter === undefined || !this.#isFree(key)) {
        this.#idleSinceMs.delete(key);
        continue;
      }
      const sinceMs = this.#idleSinceMs.get(key) ?? nowMs;
      this.#idleSinceMs.set(key, sinceMs);
      if (nowMs - sinceMs <= IDLE_MOST_MS) continue;
      const { name = '' } = waiter.process ?? {};
      this.#audit.report('idle', nameOf(key), `${key} lies free, and ${name} waits for it`);
    }
  }

  #isWell({ instance, path }: Seat<MixedClient>, key: string): boolean {
    const sinceMs = instance?.waitsSinceMs(key);
    if (instance === null || sinceMs === undefined || path.isCutOut || path.isCutBack) return false;
    const { process } = instance;
    const leavesAloneMs =
      (instance.revokedMs.get(key) ?? Number.NEGATIVE_INFINITY) + 2 * this.#setting.boundMs;
    const wellSinceMs = Math.max(sinceMs, process.thawedMs, leavesAloneMs);
    return this.#timeline.nowMs - wellSinceMs > WELL_SINCE_MS;
  }

  #isFree(key: string): boolean {
    return this.#address.machine.peek(['EXISTS', key]) === 0;
  }

  /** Whether what was drawn has taken effect. */
  #isReached(of: Dimension): boolean {
    const { draw } = this.#setting;
    const counters = this.#counters;
    const has = (name: string) => counters.get(name) > 0;
    if (counters.get('lease.acquired') < 2) return false;
    if (of === 'quarantine') return draw[of] === 'on' || has('granted with quarantine off');
    if (of === 'bounds') return draw[of] === 'the same' || has('refused by the store');
    if (of === 'holders') return draw[of] === 'unnamed' || has('granted to a named holder');
    if (of === 'prefixes')
      return draw[of] !== 'one key of two' || has('prefix refused') || this.#prefixes() > 1;
    if (of === 'loss') return draw[of] === 'none' || has(`loss: ${draw[of]}`);
    if (of === 'cut off') return draw[of] === 'no client' || has('holder cut off');
    if (of === 'newcomers') return draw[of] === 'none' || has('newcomer');
    if (of === 'store clock') return draw[of] === 'right' || has('store clock set');
    if (of === 'frozen waiters') return draw[of] === 'none' || has(`waiters frozen: ${draw[of]}`);
    if (of === 'operator')
      return draw[of] === 'none' || has(draw[of] === 'revokes' ? 'revoked' : 'revoked by force');
    const sign = SIGNS[draw[of]] ?? SIGNS[`${of} = ${draw[of]}`];
    return sign === undefined || sign.every(has);
  }

  #prefixes(): number {
    const prefixes = new Set(this.#setting.clients.map(({ prefix }) => prefix));
    const granted = [...prefixes].filter(
      (prefix) => this.#counters.get(`granted with prefix '${prefix}'`) > 0,
    );
    return granted.length;
  }
}

/** By what is seen that a drawn value has taken effect; any other one has. */
const SIGNS: { readonly [value: string]: readonly string[] } = {
  leases: ['granted for: leases'],
  pools: ['granted for: pools'],
  elections: ['granted for: elections'],
  once: ['once: ran'],
  transfers: ['transfer claimed'],
  'max hold = drawn': ['held for maxHold'],
  'after a release': ['kept after a release'],
  drifting: ['clock rate changed'],
  'beyond the guard': ['clock rate changed beyond the guard'],
  'half-open': ['carried out unanswered'],
  reordered: ['replies reordered'],
  doubled: ['carried out twice'],
  'no replies': ['fault: no replies'],
  'no requests': ['fault: no requests'],
  'half are not heard': ['fault: half are not heard'],
  'disk full': ['answered: MISCONF'],
  'out of memory': ['answered: OOM'],
  'moves while both answer': ['two servers answered'],
};

/** A client with other bounds than the store's is turned away, and remembers nothing of it. */
function isRefusal(reply: Reply): boolean {
  return Array.isArray(reply) && reply[0] === 'BOUNDS';
}

/** As a violation names it: what stands before the first colon is no part of the key. */
function nameOf(storeKey: string): string {
  return `key:${storeKey}`;
}
