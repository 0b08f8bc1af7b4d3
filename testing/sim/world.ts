/**
 * A small world in which Holdfast lives: some instances, a Redis, things that go wrong. All of it
 * follows from the seed. In turns, things go wrong for a while and are then let heal; in between it
 * is checked that they do.
 */
import { type Random, seededRandom } from '../../src/core/random.ts';
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import { Audit, type Violation } from './audit.ts';
import { Counters } from './counters.ts';
import { Courier } from './courier.ts';
import { CronWorld } from './cron-world.ts';
import { Device } from './device.ts';
import { type Episode, type FaultKind, plan, shortestEpisodeMs } from './faults.ts';
import type { SimProcess } from './host.ts';
import { type Setting, SimInstance } from './instance.ts';
import { IntentClients } from './intent-clients.ts';
import type { IntentSetting } from './intent-crew.ts';
import { KeepaliveWorld } from './keepalive-world.ts';
import { Machine } from './machine.ts';
import type { MixedEpisode, MixedKind } from './mixed-faults.ts';
import type { Draw } from './mixed-setting.ts';
import { MixedWorld } from './mixed-world.ts';
import { Nemesis } from './nemesis.ts';
import { type NetworkParts, type Path, verbOf } from './network.ts';
import { RecordsWorld } from './records-world.ts';
import { mixed, Seat } from './seat.ts';
import { PHASE, Timeline } from './timeline.ts';
import { type Note, Trace } from './trace.ts';
import { runWorld, Stop } from './world-run.ts';

export interface WorldOptions {
  readonly seed: number;
  /** Of simulated time; default 1. */
  readonly hours?: number;
  readonly instances?: number;
  readonly targets?: number;
  readonly ttlMs?: number;
  /**
   * How many workflows there are; by default some worlds have a few, of those whose shape is not
   * given.
   */
  readonly workflows?: number;
  /**
   * How many clients have sessions started and stopped; by default some worlds have a few, of those
   * without workflows.
   */
  readonly intents?: number;
  /**
   * Whether the targets are sessions, which operators pause and resume; by default so in some of
   * the other worlds.
   */
  readonly sessions?: boolean;
  /**
   * Whether each target has a long-lived task, in place of polls; by default so in some of the
   * other worlds.
   */
  readonly runs?: boolean;
  /** `off`: as in development; then a store that has forgotten lets two work at once. */
  readonly quarantine?: 'on' | 'off';
  /**
   * `mixed`: clients with configurations of their own share keys, in place of a fleet. `records`:
   * processes follow sessions that come and go. `cron`: hosts run a job once per period.
   * `keepalives`: processes hold leases of a memory store. Default `fleet`.
   */
  readonly kind?: 'fleet' | 'mixed' | 'records' | 'cron' | 'keepalives';
  /** What goes wrong; default: as the seed says. */
  readonly episodes?: readonly AnyEpisode[];
}

/** Of either kind of world. */
export type AnyEpisode = Episode<FaultKind | MixedKind>;

export interface WorldReport {
  readonly seed: number;
  readonly simulatedMs: number;
  readonly violation: Violation | null;
  readonly counters: Counters;
  /** The same for the same seed. */
  readonly digest: string;
  readonly notes: readonly Note[];
  readonly episodes: readonly AnyEpisode[];
  /** The one in which it ended. */
  readonly episode: number;
  readonly steps: number;
  /** The configuration of a mixed world. */
  readonly draw?: Draw;
}

const HOUR_MS = 3_600_000;
/**
 * Clocks run this much faster or slower at most: ten times worse than quartz, and far within what
 * the guard covers.
 */
const DRIFT = 0.001;
/** How long everything stays as it is, once it has healed. */
const CALM_MS = 60_000;
/** What the quarantine adds to a TTL. */
const MARGIN_MS = 1_000;
const LONGEST_POLL_MS = 20_000;
/** Some do not stop when they are told to. */
const SETTLE_MS = 1.2 * LONGEST_POLL_MS;

/** Worlds without a fleet, whose shape follows from the seed alone. */
const OTHER_WORLDS: Partial<
  Record<string, typeof RecordsWorld | typeof CronWorld | typeof KeepaliveWorld>
> = {
  records: RecordsWorld,
  cron: CronWorld,
  keepalives: KeepaliveWorld,
};

export async function simulateWorld(options: WorldOptions): Promise<WorldReport> {
  const { seed, hours = 1 } = options;
  const OtherWorld = options.kind && OTHER_WORLDS[options.kind];
  if (OtherWorld !== undefined) {
    const planned = options.episodes as readonly Episode[] | undefined;
    return new OtherWorld({ seed, hours, ...(planned && { episodes: planned }) }).run();
  }
  if (options.kind !== 'mixed') return new World(options).run();
  const episodes = options.episodes as readonly MixedEpisode[] | undefined;
  return new MixedWorld({ seed, hours, ...(episodes && { episodes }) }).run();
}

class World {
  readonly #options: Omit<Required<WorldOptions>, 'episodes' | 'kind'>;
  readonly #timeline = new Timeline();
  readonly #counters = new Counters();
  readonly #trace: Trace;
  readonly #audit: Audit;
  readonly #seats: Seat<SimInstance>[];
  readonly #nemesis: Nemesis;
  readonly #episodes: readonly Episode[];
  readonly #setting: Setting;
  #episode = 0;

  constructor(options: WorldOptions) {
    const { seed, episodes } = options;
    this.#options = { ...shapeOf(options), hours: 1, quarantine: 'on', ...options };
    const { hours, instances, ttlMs } = this.#options;
    const timeline = this.#timeline;
    const nowMs = () => timeline.nowMs;
    const counters = this.#counters;
    const trace = new Trace(nowMs);
    const audit = new Audit(nowMs, counters);
    this.#trace = trace;
    this.#audit = audit;
    const random = seededRandom(mixed(seed, 1));
    const courier = new Courier({ timeline, random: seededRandom(mixed(seed, 8)) });
    const clients = this.#clientsOf(this.#options);
    const setting = settingOf(this.#options, random, { courier, clients });
    this.#setting = setting;
    const witness = (args: readonly string[], reply: Reply, by: SimProcess) => {
      const verb = verbOf(args);
      trace.mix(verb);
      if (reply instanceof ReplyError) counters.add(`answered: ${reply.message.split(' ', 1)}`);
      audit.served(args, reply, by);
      this.#nemesis.served(verb);
    };
    const drift = () => 1 + (random.next() - 0.5) * 2 * DRIFT;
    const machine = new Machine(timeline, seededRandom(mixed(seed, 2)), witness, { rate: drift() });
    if (this.#options.quarantine === 'on') audit.watchModel(ttlMs);
    const peek = (args: readonly string[]) => machine.peek(args);
    if (setting.workflows !== null) audit.watchWorkflows(peek);
    if (setting.intents !== null) audit.watchIntents(peek, setting.intents);
    const device = new Device({
      timeline,
      random: seededRandom(mixed(seed, 3)),
      onWrite: (write, isAccepted) => audit.written(write, isAccepted),
    });
    const own = { setting, audit, counters, device, trace };
    const make = (network: NetworkParts) => new SimInstance({ ...own, network });
    const common = { timeline, machine, counters, trace, seed, make };
    this.#seats = Array.from(
      { length: instances },
      (_, number) => new Seat({ ...common, number, rate: drift() }),
    );
    for (const { path } of this.#seats) path.deafTo = deafnessOf(setting);
    const forNemesis = { timeline, machine, audit, counters, trace, ttlMs };
    this.#nemesis = new Nemesis({
      ...forNemesis,
      random: seededRandom(mixed(seed, 4)),
      seats: this.#seats,
    });
    audit.surroundings = {
      quietForMs: () => this.#nemesis.quietForMs,
      isWell: (holder) => this.#seats.some(({ instance }) => instance?.isWell(holder) === true),
    };
    const hasIntents = setting.intents !== null;
    const { hasSessions } = setting;
    const planned = {
      random: seededRandom(mixed(seed, 5)),
      seats: instances,
      ttlMs,
      hasIntents,
      hasSessions,
    };
    const most = Math.ceil((hours * HOUR_MS) / shortestEpisodeMs(ttlMs));
    this.#episodes =
      (episodes as readonly Episode[] | undefined) ?? plan({ ...planned, episodes: most });
  }

  #clientsOf({ seed, intents: count }: Pick<Required<WorldOptions>, 'seed' | 'intents'>) {
    const random = seededRandom(mixed(seed, 9));
    return new IntentClients({ timeline: this.#timeline, counters: this.#counters, random, count });
  }

  /**
   * How long after the last fault everything is owned again: a quarantine, and then what a dead
   * owner leaves behind.
   */
  get #healMs(): number {
    const { ttlMs } = this.#options;
    return 2 * ttlMs + MARGIN_MS + ttlMs / 3 + LONGEST_POLL_MS;
  }

  async run(): Promise<WorldReport> {
    await runWorld({
      timeline: this.#timeline,
      audit: this.#audit,
      settled: () => this.#audit.settled(),
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
    this.#setting.intents?.clients.start();
    // Nothing goes wrong while they start.
    await timeline.run(this.#options.ttlMs);
    for (const [number, { faults, lastsMs }] of this.#episodes.entries()) {
      this.#episode = number;
      const fromMs = timeline.nowMs;
      if (fromMs >= this.#options.hours * HOUR_MS) return;
      for (const fault of faults)
        timeline.at(fromMs + fault.atMs, () => this.#nemesis.strike(fault), PHASE.observer);
      await timeline.run(fromMs + lastsMs);
      const longerMs = this.#nemesis.heal();
      await timeline.run(timeline.nowMs + this.#healMs + longerMs);
      this.#checkHealed();
      await this.#checkCalm();
    }
  }

  /** Every target has an owner, or is on its way from one to another whose work has not settled. */
  #checkHealed(): void {
    const owned = new Set(this.#seats.flatMap(({ instance }) => instance?.owned() ?? []));
    for (const target of this.#setting.targets) {
      const isOwned = owned.has(target) || this.#audit.isTaken(`poll:${target}`);
      if (!isOwned) this.#audit.report('healing', target, `${target} has no owner`);
    }
    this.#counters.add('healed');
    if (this.#audit.violation !== null) throw new Stop();
  }

  async #checkCalm(): Promise<void> {
    const calmSinceMs = this.#timeline.nowMs;
    this.#audit.intents?.calmBegins();
    this.#audit.workers?.calmBegins();
    const moves = () => this.#counters.get('granted: poll');
    const polled = () =>
      this.#setting.targets.map((target) => this.#counters.get(`poll begun: ${target}`));
    // Nothing moves before the work on it has settled.
    await this.#timeline.run(this.#timeline.nowMs + SETTLE_MS + this.#options.ttlMs);
    const [movesBefore, polledBefore] = [moves(), polled()];
    // Long enough for every target's turn to come.
    await this.#timeline.run(this.#timeline.nowMs + CALM_MS + this.#setting.everyMs);
    const loads = this.#seats.map(({ instance }) => instance?.owned().length ?? 0);
    const isEven = Math.max(...loads) - Math.min(...loads) <= 1;
    if (!isEven) this.#audit.report('calm', '', `the shares are ${loads.join(', ')}`);
    const moved = moves() - movesBefore;
    if (moved > 0) this.#audit.report('calm', '', `${moved} targets moved although nothing did`);
    for (const [t, count] of polled().entries()) {
      const target = this.#setting.targets[t] ?? '';
      if (count === polledBefore[t])
        this.#audit.report('healing', target, `${target} is polled by nobody`);
    }
    this.#audit.workflows?.checkHealed(calmSinceMs);
    this.#checkSessions(calmSinceMs);
    if (this.#audit.violation !== null) throw new Stop();
  }

  #checkSessions(calmSinceMs: number): void {
    const { intents, workers } = this.#audit;
    if (intents === null) return;
    intents.checkHealed(calmSinceMs);
    workers?.checkHealed(intents.running(), (id) => intents.isSession(id));
  }
}

/** A key that is held for up to three TTLs, and one that the same name takes again and again. */
const UNNAMED = { key: 'door', isNamed: false, keepMs: 100_000, pauseMs: 60_000 };
const NAMED = { key: 'mast', isNamed: true, keepMs: 30_000, pauseMs: 20_000 };
const NAMED_SHARE = 0.5;
/** The share of worlds whose instances write down what happens to them. */
const HISTORY_SHARE = 0.1;

/** Mostly the default. Short ones cost more: everything happens as often, in less time. */
const TTLS_MS: readonly [number, ...number[]] = [
  30_000,
  ...new Array<number>(13).fill(30_000),
  60_000,
  60_000,
  12_000,
  12_000,
  5_000,
];

/**
 * The share of worlds with workflows, how many they have, and who does their work. There is little
 * to poll in them.
 */
const WORKFLOWS_SHARE = 0.25;
const WORKFLOWS = [1, 2, 2, 3] as const;
const PROCESSORS = ['press', 'oven'];
/**
 * The share of worlds without any of that whose targets are sessions, and of hints about these that
 * get lost.
 */
const SESSIONS_SHARE = 0.3;
const SESSION_HINTS = 'signal:sessions';
/** The share of those worlds whose targets have tasks. */
const RUNS_SHARE = 0.25;
const SESSION_DEAFNESS = 0.5;
/**
 * The share of the other worlds whose processes accept intents, which is a fifth of all, and how
 * many clients send them.
 */
const INTENTS_SHARE = 0.27;
const CLIENTS = [3, 4, 6] as const;
const SECRETS = ['one', 'one', 'made', 'changing'] as const;
/**
 * What they have to share: fewer tuners than channels, and in some worlds as many decks for
 * recordings.
 */
const TUNERS = [2, 2, 3, 4] as const;
const DECKS = [0, 0, 2] as const;
const WAITS_MS = [0, 0, 2_000, 8_000] as const;
/** Whether the work of workflows goes wrong most of the time. */
const TROUBLED = [false, false, true] as const;
/** The share of hints, about sessions or about the results of actions, that get lost. */
const DEAFNESS = [0, 0.3, 0.6] as const;
/** In the names of the channels on which orchestrators hear of results. */
const RESULT_HINTS = 'signal:workflow:';
/**
 * The share of worlds whose workers have names, of these that where two have the same, and of those
 * that lease as they accept.
 */
const NAMES_SHARE = 0.6;
const SAME_NAME_SHARE = 0.2;
const API_LEASES_SHARE = 0.15;
/** How long those last. */
const API_TTL_MS = 30_000;
/** Of the TTL: what a pipeline has to end. */
const GRACE_SHARE = 0.1;
const TARGETS_BESIDE_OTHER_WORK = 1;

type Shape = Pick<
  Required<WorldOptions>,
  'instances' | 'targets' | 'ttlMs' | 'workflows' | 'intents' | 'sessions' | 'runs'
>;

/** What a world is made of, where nobody says: mostly a usual one, with the usual timings. */
function shapeOf(options: WorldOptions): Shape {
  const { seed, workflows: w, intents: n } = options;
  const random = seededRandom(mixed(seed, 6));
  const instances = pick(random, [2, 3, 3, 3, 4, 5]);
  const targets = pick(random, [1, 3, 5, 5, 5, 8, 12]);
  const shape = { instances, targets, ttlMs: pick(random, TTLS_MS) };
  const given = [options.instances, options.targets, options.ttlMs, w, n];
  const isLeftToChance = given.every((one) => one === undefined);
  const hasWorkflows = isLeftToChance && random.next() < WORKFLOWS_SHARE;
  const workflows = w ?? (hasWorkflows ? pick(random, WORKFLOWS) : 0);
  const hasIntents = isLeftToChance && !hasWorkflows && random.next() < INTENTS_SHARE;
  const intents = n ?? (hasIntents ? pick(random, CLIENTS) : 0);
  const isBusy = workflows > 0 || intents > 0;
  const hasSessions = isLeftToChance && !isBusy && random.next() < SESSIONS_SHARE;
  const sessions = options.sessions ?? hasSessions;
  // Of its own source: what the other worlds are made of stays as it is.
  const hasRuns = isLeftToChance && !isBusy && seededRandom(mixed(seed, 13)).next() < RUNS_SHARE;
  const runs = options.runs ?? hasRuns;
  const targeted = isBusy ? { targets: TARGETS_BESIDE_OTHER_WORK } : {};
  return { ...shape, ...targeted, workflows, intents, sessions, runs };
}

/** The hints that get lost on the way: about sessions, or about the results of actions. */
function deafnessOf({ intents, workflows, hasSessions }: Setting): Path['deafTo'] {
  if (hasSessions) return { channel: SESSION_HINTS, share: SESSION_DEAFNESS };
  if (workflows !== null) return { channel: RESULT_HINTS, share: workflows.deafness };
  return { channel: 'intent:', share: intents?.deafness ?? 0 };
}

function pick<T>(random: Random, from: readonly [T, ...T[]]): T {
  return from[Math.floor(random.next() * from.length)] ?? from[0];
}

function settingOf(
  options: Shape & Pick<Required<WorldOptions>, 'seed' | 'quarantine'>,
  random: Random,
  { courier, clients }: { courier: Courier; clients: IntentClients },
): Setting {
  const { seed, targets, ttlMs, quarantine, workflows, intents, sessions, runs } = options;
  const ids = Array.from({ length: workflows }, (_, i) => `w${i}`);
  const deafness = pick(seededRandom(mixed(seed, 11)), DEAFNESS);
  const isTroubled = pick(seededRandom(mixed(seed, 12)), TROUBLED);
  const crew = { ids, processors: PROCESSORS, ttlMs, courier, deafness, isTroubled };
  const desk = deskOf(seededRandom(mixed(seed, 10)), ttlMs);
  return {
    targets: Array.from({ length: targets }, (_, i) => `t${i}`),
    hasSessions: sessions,
    isRun: runs,
    ttlMs,
    quarantine,
    everyMs: ttlMs,
    pollMs: { usual: 500, longest: LONGEST_POLL_MS },
    contended: random.next() < NAMED_SHARE ? NAMED : UNNAMED,
    hasHistory: random.next() < HISTORY_SHARE,
    workflows: workflows > 0 ? crew : null,
    intents: intents > 0 ? { ...desk, clients } : null,
  };
}

function deskOf(random: Random, ttlMs: number): Omit<IntentSetting, 'clients'> {
  return {
    ttlMs,
    graceMs: ttlMs * GRACE_SHARE,
    longestTtlMs: Math.max(ttlMs, API_TTL_MS),
    secrets: pick(random, SECRETS),
    tuners: pick(random, TUNERS),
    decks: pick(random, DECKS),
    waitMs: pick(random, WAITS_MS),
    hasNames: random.next() < NAMES_SHARE,
    isNameShared: random.next() < SAME_NAME_SHARE,
    deafness: pick(random, DEAFNESS),
    apiLeases: random.next() < API_LEASES_SHARE ? 'on' : 'off',
  };
}
