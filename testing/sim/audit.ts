/**
 * Watches a world from outside, with true time, and holds it to what Holdfast promises:
 *
 * - **exclusion**: at no moment may two processes begin, or continue with, work on one target;
 * - **fencing**: what is written to never takes a lower fence after a higher one;
 * - **tenures**: one fence belongs to one holder;
 * - **grants**: each new fence of a key is higher than all before it, over restarts and failovers;
 * - **handover**: nothing is handed over while it is worked on, nor to a member that does not take
 *   it although nothing is wrong;
 * - **healing**: once nothing is wrong any more, every target has an owner within the stated time,
 *   and is worked on;
 * - **calm**: the shares are even then, and nothing moves;
 * - **tidiness**: a process that has stopped leaves no timer, and no rejection is left to nobody;
 * - **epochs** and **actions**: of workflows, in `workflow-audit.ts`; and that no two attempts at
 *   one action may continue at one moment;
 * - **intents** and **sessions**: of what clients have had started, in `intent-audit.ts`;
 * - **slots**: of what workers run for these, in `worker-audit.ts`;
 * - **tasks**, of worlds whose targets are run: a task begins under a lease that is held, once at a
 *   time in a process, and is told to stop when its lease is over; one that continues then is
 *   reported as stuck;
 * - **quarantine** and **idle**, of mixed worlds: a quarantine lasts no longer than the bound and a
 *   second, and no key lies free for long while a client that is well waits for it. Exclusion there
 *   is judged in `believers.ts`;
 * - **periods**, of cron worlds: a job runs once in each, in `cron-world.ts`; of mixed worlds, and
 *   **holds** there, that a lease is over after its `maxHold`, in `work-audit.ts`;
 * - **keepalives**, of worlds with these: in `keepalive-audit.ts`;
 * - **model**: each step of the store and of its clients is one that the formal model allows, in
 *   `model-audit.ts`.
 *
 * Some faults are outside of what can be promised. Each of those says which of these it may break,
 * and for how long.
 */
import type { Reply } from '../../src/store/redis/client/wire.ts';
import type { Counters } from './counters.ts';
import type { Write } from './device.ts';
import { HandoverAudit, type Offer, type Surroundings } from './handover-audit.ts';
import type { SimProcess } from './host.ts';
import { IntentAudit } from './intent-audit.ts';
import type { IntentSetting } from './intent-crew.ts';
import { IntentSight } from './intent-sight.ts';
import { ModelAudit } from './model-audit.ts';
import { verbOf } from './network.ts';
import { WorkerAudit } from './worker-audit.ts';
import { WorkflowAudit } from './workflow-audit.ts';
import { type Peek, WorkflowSight } from './workflow-sight.ts';

export type Invariant =
  | 'exclusion'
  | 'fencing'
  | 'tenures'
  | 'grants'
  | 'handover'
  | 'healing'
  | 'calm'
  | 'tidiness'
  | 'epochs'
  | 'actions'
  | 'steps'
  | 'intents'
  | 'sessions'
  | 'slots'
  | 'tasks'
  | 'quarantine'
  | 'periods'
  | 'keepalives'
  | 'model'
  | 'holds'
  | 'idle';

export interface Violation {
  readonly invariant: Invariant;
  readonly atMs: number;
  readonly target: string;
  readonly text: string;
}

/** One process that believes a target, or a piece of work on it, to be its own. */
export interface Claim {
  readonly process: SimProcess;
  readonly target: string;
  /** An attempt at an action, of which there is one at a time, also in one process. */
  readonly isAttempt?: boolean;
  /** What its own code says when it is asked now. */
  isValid(): boolean;
}

/** For a while, this may be broken, and it is nobody's fault. */
export interface Excuse {
  readonly invariants: readonly Invariant[];
  readonly untilMs: number;
  /** Of this target only; of all by default. */
  readonly target?: string;
  /** Only if one of the processes concerned is of this kind; all of them by default. */
  concerns?(process: SimProcess): boolean;
}

/** What is known of one key's fences. */
interface Fences {
  highest: number;
  readonly holders: Map<number, string>;
  /** Handed over, and not claimed yet. */
  offered: Offer | null;
}

/** So many fences of a key are remembered with their holders. */
const FENCES_KEPT = 64;
/** Clocks do not run alike. */
const MARGIN_MS = 1_000;
/** What breaks one of these for a while may break a rule of the model. */
const OF_THE_MODEL: readonly Invariant[] = ['exclusion', 'grants', 'tenures'];

export class Audit {
  readonly #counters: Counters;
  readonly #nowMs: () => number;
  readonly #claims = new Map<string, Set<Claim>>();
  /** Targets that more than one process believes to be its own. */
  readonly #contested = new Set<string>();
  readonly #fences = new Map<string, Fences>();
  /** The highest fence that each target's device has taken, and each record in the store. */
  readonly #accepted = new Map<string, number>();
  readonly #recorded = new Map<string, number>();
  readonly #writers = new Map<string, string>();
  readonly #excuses: Excuse[] = [];
  #workflows: WorkflowAudit | null = null;
  #intents: IntentAudit | null = null;
  #workers: WorkerAudit | null = null;
  #model: ModelAudit | null = null;
  /**
   * Fences that were granted twice, and it was nobody's fault: who writes with them later is not at
   * fault either.
   */
  readonly #twice = new Set<number>();
  #violation: Violation | null = null;
  readonly #handovers: HandoverAudit;

  constructor(nowMs: () => number, counters: Counters) {
    this.#nowMs = nowMs;
    this.#counters = counters;
    this.#handovers = new HandoverAudit(nowMs, (target, text) =>
      this.report('handover', target, text),
    );
  }

  /** Only the surroundings know which fault caused a gap. */
  set surroundings(surroundings: Surroundings) {
    this.#handovers.surroundings = surroundings;
  }

  get violation(): Violation | null {
    return this.#violation;
  }

  /** Null where nobody has any. */
  get workflows(): WorkflowAudit | null {
    return this.#workflows;
  }

  /** Null in worlds that are not replayed. */
  get model(): ModelAudit | null {
    return this.#model;
  }

  /** Replays what happens to leases against the model. */
  watchModel(boundMs: number, drift?: number): ModelAudit {
    const report = (key: string, text: string) => void this.report('model', targetOf(key), text);
    this.#model = new ModelAudit({ nowMs: this.#nowMs, boundMs, drift, report });
    return this.#model;
  }

  /** There are workflows, and this is how to look into the store. */
  watchWorkflows(peek: Peek): void {
    this.#workflows = new WorkflowAudit({
      nowMs: this.#nowMs,
      counters: this.#counters,
      sight: new WorkflowSight(peek, this.#nowMs),
      report: (invariant, target, text) => void this.report(invariant, target, text),
      granted: (key, holder, fence) => this.#grant(key, holder, fence),
    });
  }

  /** Null where nobody accepts any. */
  get intents(): IntentAudit | null {
    return this.#intents;
  }

  /** The same of what runs for their sessions. */
  get workers(): WorkerAudit | null {
    return this.#workers;
  }

  watchIntents(
    peek: Peek,
    {
      secrets,
      longestTtlMs: ttlMs,
      graceMs,
    }: Pick<IntentSetting, 'secrets' | 'longestTtlMs' | 'graceMs'>,
  ): void {
    const common = { nowMs: this.#nowMs, counters: this.#counters };
    const report: Audit['report'] = (...told) => this.report(...told);
    const isGoingOn: IntentAudit['isGoingOn'] = (...of) => this.#intents?.isGoingOn(...of) ?? null;
    const isOpen = (id: string) => this.#intents?.isOpen(id) ?? false;
    const workers = new WorkerAudit({ ...common, peek, ttlMs, graceMs, report, isGoingOn, isOpen });
    this.#workers = workers;
    this.#intents = new IntentAudit({
      ...common,
      sight: new IntentSight(peek),
      secrets,
      graceMs,
      report: (invariant, target, text) => void report(invariant, target, text),
      ended: (id, by) => {
        if (by !== null) workers.endedBy(by, id);
        workers.ended(id);
      },
    });
  }

  claim(claim: Claim): () => void {
    const { target } = claim;
    const claims = this.#claims.get(target) ?? new Set();
    this.#claims.set(target, claims);
    claims.add(claim);
    if (claims.size > 1) this.#contest(target, claims);
    return () => {
      claims.delete(claim);
      this.#contest(target, claims);
    };
  }

  /** A process is gone: it claims nothing any more. */
  forget(process: SimProcess): void {
    for (const [target, claims] of this.#claims) {
      for (const claim of claims) if (claim.process === process) claims.delete(claim);
      this.#contest(target, claims);
    }
    this.#workflows?.forget(process);
    this.#workers?.forget(process);
  }

  excuse(excuse: Excuse): void {
    this.#excuses.push(excuse);
  }

  /** After everything that happens: nothing else can make a second process valid. */
  settled(): void {
    this.#workers?.settled();
    this.#handovers.settled();
    if (this.#contested.size === 0) return;
    for (const target of this.#contested) {
      const valid: SimProcess[] = [];
      let isAttempted = false;
      for (const { process, isAttempt = false, isValid } of this.#claims.get(target) ?? []) {
        isAttempted = isAttempt;
        if (!canAct(process) || (!isAttempt && valid.includes(process))) continue;
        // To ask is to read its clock, and there it may be waiting to be stopped or killed.
        if (isValid() && canAct(process)) valid.push(process);
      }
      if (valid.length < 2) continue;
      this.#counters.add(isAttempted ? 'two attempts' : 'two owners');
      const names = valid.map(({ name }) => name).join(' and ');
      const invariant = isAttempted ? 'actions' : 'exclusion';
      this.report(invariant, target, `${names} both may work on ${target}`, valid);
    }
  }

  /** A command was carried out. `by`: whose it was. */
  served(args: readonly string[], reply: Reply, by: SimProcess): void {
    const verb = verbOf(args);
    this.#model?.served(args, reply);
    if (verb === 'lease/acquire' || verb === 'lease/claim') this.#acquired(args, reply, by);
    else if (verb === 'lease/release') this.#workers?.released(args, reply, by);
    else if (verb === 'lease/transfer') this.#transferred(args, reply);
    else if (verb === 'record/put') this.#put(args, reply);
    else if (verb === 'lease/revoke') this.#revoked(args, reply);
    else {
      this.#workflows?.served(verb, args.slice(3 + Number(args[2])), reply);
      this.#intents?.served(verb, args.slice(3 + Number(args[2])), reply, by);
    }
  }

  /** Whether a process may work on a target now. */
  isTaken(target: string): boolean {
    return [...(this.#claims.get(target) ?? [])].some(({ isValid }) => isValid());
  }

  written({ target, fence, by }: Write, isAccepted: boolean): void {
    this.#counters.add(isAccepted ? 'write accepted' : 'write fenced off');
    const writer = this.#writers.get(`${target} ${fence}`);
    if (writer !== undefined && writer !== by && !this.#twice.has(fence))
      this.report('tenures', target, `${writer} and ${by} both wrote with fence ${fence}`);
    if (writer === undefined) this.#remember(`${target} ${fence}`, by);
    if (isAccepted) this.#accept(this.#accepted, target, fence, by);
  }

  /**
   * The store has lost data: what its records have seen of fences may be gone. The devices have
   * lost nothing. `isTorn`: some keys, and others not. `isSilent`: no connection broke.
   */
  storeForgot({ isTorn = false, isSilent = false } = {}): void {
    this.#recorded.clear();
    this.#model?.lost();
    if (isSilent) this.#handovers.storeForgotUnnoticed();
    this.#workflows?.storeForgot(isTorn);
    this.#intents?.storeForgot({ isTorn, isSilent });
  }

  /** Says whether it was excused. */
  report(
    invariant: Invariant,
    target: string,
    text: string,
    concerned: readonly SimProcess[] = [],
  ): boolean {
    const atMs = this.#nowMs();
    const isExcused = this.#excuses.some(
      ({ invariants, untilMs, target: only = target, concerns }) =>
        atMs <= untilMs &&
        only === target &&
        (invariant === 'model'
          ? invariants.some((one) => OF_THE_MODEL.includes(one))
          : invariants.includes(invariant) && (concerns === undefined || concerned.some(concerns))),
    );
    if (isExcused) this.#counters.add(`excused: ${invariant}`);
    else this.#violation ??= { invariant, atMs, target, text };
    return isExcused;
  }

  #contest(target: string, claims: ReadonlySet<Claim>): void {
    const [first, ...others] = claims;
    const isContested = (one: Claim) => one.isAttempt || one.process !== first?.process;
    if (others.some(isContested)) this.#contested.add(target);
    else this.#contested.delete(target);
  }

  #accept(accepted: Map<string, number>, target: string, fence: number, by: string): void {
    const highest = accepted.get(target) ?? 0;
    if (fence < highest)
      this.report('fencing', target, `${by} wrote with ${fence} after ${highest}`);
    else accepted.set(target, fence);
  }

  #remember(name: string, by: string): void {
    this.#writers.set(name, by);
    if (this.#writers.size <= FENCES_KEPT * 16) return;
    const [oldest] = this.#writers.keys();
    if (oldest !== undefined) this.#writers.delete(oldest);
  }

  #fencesOf(key: string): Fences {
    const known = this.#fences.get(key) ?? { highest: 0, holders: new Map(), offered: null };
    this.#fences.set(key, known);
    return known;
  }

  /**
   * `EVALSHA sha n marker lease… era ttl inbox (holder options)…`, or `… era era ttl (holder
   * floor)…` for a claim.
   */
  #acquired(args: readonly string[], reply: Reply, by: SimProcess): void {
    if (!Array.isArray(reply)) return;
    const keys = Number(args[2]);
    for (const [i, granted] of reply.entries()) {
      if (typeof granted !== 'number') continue;
      const key = args[4 + i] ?? '';
      const holder = args[3 + keys + 3 + 2 * i] ?? '';
      if (verbOf(args) === 'lease/claim') this.#counters.add('claimed in a quarantine');
      const { offered } = this.#fencesOf(key);
      if (offered !== null)
        this.#counters.add(
          offered.successor === holder ? 'transfer claimed' : 'transfer never claimed',
        );
      if (offered !== null) offered.isClaimed = true;
      this.#fencesOf(key).offered = null;
      this.#grant(key, holder, granted);
      this.#workers?.granted(key, holder, granted, by);
    }
  }

  /** `EVALSHA sha n lease… window era ms (holder fence successor inbox)…` */
  #transferred(args: readonly string[], reply: Reply): void {
    if (!Array.isArray(reply)) return;
    const keys = Number(args[2]);
    for (const [i, fence] of reply.entries()) {
      if (typeof fence !== 'number') continue;
      const key = args[3 + i] ?? '';
      const successor = args[3 + keys + 3 + 4 * i + 2] ?? '';
      this.#grant(key, successor, fence);
      this.#fencesOf(key).offered = this.#handovers.offered(key, successor, Number(args[3 + keys]));
    }
  }

  #grant(key: string, holder: string, fence: number): void {
    const fences = this.#fencesOf(key);
    const before = fences.holders.get(fence);
    if (before !== undefined) {
      const text = `fence ${fence} was granted to ${before} and to ${holder}`;
      if (before !== holder && this.report('tenures', key, text)) this.#twice.add(fence);
      // Who presents its fence is granted it again; but not once there has been a higher one.
      if (fence < fences.highest)
        this.report('grants', key, `fence ${fence} was granted again after ${fences.highest}`);
      return;
    }
    if (fence <= fences.highest)
      this.report('grants', key, `fence ${fence} was granted after ${fences.highest}`);
    fences.highest = Math.max(fences.highest, fence);
    fences.holders.set(fence, holder);
    const [oldest] = fences.holders.keys();
    if (fences.holders.size > FENCES_KEPT && oldest !== undefined) fences.holders.delete(oldest);
  }

  /**
   * `EVALSHA sha 1 lease tombstone force …`: by force, the next may be granted what the revoked
   * holder still works on. The operator was told for how long.
   */
  #revoked(args: readonly string[], reply: Reply): void {
    if (args[5] !== '1' || !Array.isArray(reply) || reply.length < 3) return;
    const key = args[3] ?? '';
    const target = targetOf(key);
    const untilMs = this.#nowMs() + Number(reply[2]) + MARGIN_MS;
    this.excuse({ invariants: ['exclusion'], untilMs, target });
    const slot = key.replace(/^lease:/, 'slot:');
    this.excuse({ invariants: ['slots'], untilMs, target: slot });
  }

  /** `EVALSHA sha n index record… kept (id json fence revision)…` */
  #put(args: readonly string[], reply: Reply): void {
    if (!Array.isArray(reply)) return;
    const keys = Number(args[2]);
    for (const [i, written] of reply.entries()) {
      const isWritten = Array.isArray(written) && written[0] === 1;
      const fence = args[3 + keys + 1 + 4 * i + 2] ?? '';
      if (isWritten && fence !== '')
        this.#accept(this.#recorded, args[4 + i] ?? '', Number(fence), 'a result');
    }
  }
}

/** What work under a lease is called. */
function targetOf(key: string): string {
  return key.replace(/^poll:lease:/, 'poll:');
}

function canAct(process: SimProcess): boolean {
  return !process.isFrozen && !process.isDead;
}
