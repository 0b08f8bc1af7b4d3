/**
 * Watches workflows from outside, by what their store has carried out, and holds them to what
 * Holdfast promises:
 *
 * - **epochs**: each step of a workflow has the epoch that follows the one before it; none is given
 *   twice or left out. Every step was taken by the tenure that the store named at that moment;
 * - **actions**: what was emitted is emitted again by every tenure until its result is in, and none
 *   is lost; it has one result, which comes from its last processor; what is given out belongs to
 *   the tenure of the moment, with a higher fence each time, and in the order of epochs;
 * - **healing**: once nothing is wrong any more, every action of a workflow that is held gets
 *   its result, its orchestrator hears of it, and workflows continue.
 *
 * When the store has lost data, what it still knows is looked at there and then, and counts from
 * then on: epochs and actions that it has forgotten may come again, or never.
 */
import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';
import type { Invariant } from './audit.ts';
import type { Counters } from './counters.ts';
import { FunctionAudit } from './function-audit.ts';
import type { SimProcess } from './host.ts';
import { type Hand, pairsOf, partsOf, WorkflowRecord } from './workflow-record.ts';
import { leaseKey, type WorkflowSight } from './workflow-sight.ts';

export interface WorkflowAuditParts {
  nowMs(): number;
  readonly counters: Counters;
  readonly sight: WorkflowSight;
  report(invariant: Invariant, target: string, text: string): void;
  granted(key: string, holder: string, fence: number): void;
}

/** A process waits for the result of an action. */
interface Waiting {
  readonly process: SimProcess;
  readonly workflow: string;
  readonly action: string;
  readonly sinceMs: number;
}

type Served = (argv: readonly string[], reply: Reply) => void;
type Snapshot = [facts: (string | null)[], unresolved: number, parked: number, unread: number];

/**
 * All that is done with an action whose turn it is takes no longer: two before it that take long,
 * and tries that came to nothing.
 */
const RESOLVED_WITHIN_MS = 100_000;
/** A result is looked for every two seconds; a request takes up to five. */
const HEARD_WITHIN_MS = 15_000;

/** Workflows of functions have ids that begin with this. */
export const FUNCTION_IDS = 'f-';

const isFunction = (id: string) => id.startsWith(FUNCTION_IDS);

export class WorkflowAudit {
  readonly functions: FunctionAudit;
  readonly #parts: WorkflowAuditParts;
  readonly #sight: WorkflowSight;
  readonly #workflows = new Map<string, WorkflowRecord>();
  readonly #waiting = new Set<Waiting>();
  /** Whether the holder of a tenure is cut off from the store now. */
  readonly #tenants = new Map<string, () => boolean>();

  constructor(parts: WorkflowAuditParts) {
    this.#parts = parts;
    this.#sight = parts.sight;
    const report = (text: string, id: string) => parts.report('steps', id, text);
    const { nowMs, counters, sight } = parts;
    this.functions = new FunctionAudit({ nowMs, counters, sight, report });
  }

  /** An orchestrator waits for a result, until what this gives is called. */
  waits(waiting: Omit<Waiting, 'sinceMs'>): () => void {
    const one = { ...waiting, sinceMs: this.#parts.nowMs() };
    this.#waiting.add(one);
    return () => this.#waiting.delete(one);
  }

  /** A tenure has begun, as its process knows. */
  tenant(leaseId: string, isCutOff: () => boolean): void {
    this.#tenants.set(leaseId, isCutOff);
  }

  forget(process: SimProcess): void {
    for (const one of this.#waiting) if (one.process === process) this.#waiting.delete(one);
  }

  /** A script of this verb was carried out; arguments without its keys. */
  served(verb: string, argv: readonly string[], reply: Reply): void {
    if (!(reply instanceof ReplyError)) this.#verbs[verb]?.(argv, reply);
  }

  /** The store may have lost data. `isTorn`: some keys, and others not. */
  storeForgot(isTorn: boolean): void {
    this.functions.storeForgot();
    for (const workflow of this.#workflows.values()) {
      if (isTorn) workflow.isDamaged = true;
      this.#sight.lookAt(workflow);
    }
  }

  /** Nothing has been wrong for long: says what should have come of it by now. */
  checkHealed(calmSinceMs: number): void {
    const nowMs = this.#parts.nowMs();
    for (const workflow of this.#workflows.values()) {
      const { id, tenure, isBegun, beganMs, steppedMs } = workflow;
      // A function that has ended, or sleeps, takes no step.
      if (steppedMs < calmSinceMs && !isFunction(id))
        this.#report('healing', id, `nobody has taken a step of ${id} for long`);
      if (!isBegun || tenure === null || this.#sight.holderOf(id) !== tenure) continue;
      for (const [action, { sinceMs }] of workflow.actions)
        if (nowMs - Math.max(sinceMs, beganMs) > RESOLVED_WITHIN_MS)
          this.#report('healing', id, `action ${action} of ${id} gets no result`);
    }
    for (const { process, workflow, action, sinceMs } of this.#waiting) {
      const inMs = this.#workflows.get(workflow)?.results.get(action);
      if (inMs === undefined) continue;
      if (nowMs - Math.max(inMs, sinceMs) > HEARD_WITHIN_MS)
        this.#report('healing', workflow, `${process.name} does not hear of ${action}'s result`);
    }
  }

  readonly #verbs: Readonly<Record<string, Served>> = {
    'workflow/begin': (argv, reply) => this.#begun(argv, reply),
    'workflow/emit': (argv, reply) => this.#emitted(argv, reply),
    'workflow/update': (argv, reply) => this.#updated(argv, reply),
    'workflow/unpark': (argv, reply) => this.#unparked(argv, reply),
    'workflow/handoff': (argv, reply) => this.#handedOver(argv, reply),
    'workflow/revoke': (argv, reply) => this.#deposed(argv, reply),
    'workflow/revive': (_, reply) => this.#revived(reply),
    'workflow/take': (argv, reply) => this.#taken(argv, reply),
    'workflow/settle': (argv, reply) => this.#settled(argv, reply),
    'run/start': (argv, reply) => this.functions.started(argv, reply),
    'run/keep': (argv, reply) => this.functions.kept(argv, reply),
  };

  /**
   * workflow, lease id, fence, channel, resume, first state → 1, snapshot, emitted again, dropped
   */
  #begun([, id = '', leaseId = '', , , resume]: readonly string[], reply: Reply): void {
    const [kind, snapshot, again, dropped] = reply as [number, Snapshot, string[], string[]];
    const workflow = this.#of(id);
    if (kind !== 1) return;
    if (workflow.tenure === leaseId && workflow.isBegun) return;
    const { successor, isRevoked } = workflow;
    if (successor !== null)
      this.#count(successor === leaseId ? 'handoff claimed' : 'handoff never claimed');
    if (this.#sight.holderOf(id) !== leaseId)
      this.#report('epochs', id, `${leaseId} began a tenure of ${id} without its lease`);
    const isDropping = isRevoked && resume !== '1';
    this.#checkKept(workflow, isDropping ? dropped : again);
    this.#anew(workflow, leaseId, pairsOf(again));
    if (isDropping) {
      if (workflow.actions.size > 0) this.#count('actions dropped');
      workflow.actions.clear();
      workflow.hands.clear();
    } else if (again.length > 0) this.#count('actions emitted anew');
    if (Number(snapshot[0][1]) !== workflow.epoch)
      this.#report('epochs', id, `${id} has epoch ${snapshot[0][1]}, not ${workflow.epoch}`);
    const nowMs = this.#parts.nowMs();
    Object.assign(workflow, { tenure: leaseId, isBegun: true, isRevoked: false, successor: null });
    Object.assign(workflow, { update: null, beganMs: nowMs, steppedMs: nowMs });
  }

  /** What is unresolved is emitted again, or dropped, all of it. */
  #checkKept(workflow: WorkflowRecord, listed: readonly string[]): void {
    const ids = new Set(pairsOf(listed).map(([action]) => action));
    for (const action of workflow.actions.keys())
      if (!ids.has(action))
        this.#report('actions', workflow.id, `action ${action} was lost by a new tenure`);
  }

  #anew(workflow: WorkflowRecord, leaseId: string, pairs: readonly [string, string][]): void {
    const sinceMs = this.#parts.nowMs();
    for (const [action, record] of pairs) {
      const { epoch, target, leaseId: of } = partsOf(record);
      if (epoch !== workflow.epoch)
        this.#report('epochs', workflow.id, `${action} has ${epoch} anew, not ${workflow.epoch}`);
      if (of !== leaseId)
        this.#report('epochs', workflow.id, `${action} is not of the tenure that emitted it anew`);
      workflow.actions.set(action, { target, epoch, sinceMs });
      workflow.epoch++;
    }
  }

  /**
   * workflow, lease id, epoch, how many were read, these; then id, target, priority, body, type and
   * size, step, its name of each → kind, epoch
   */
  #emitted(argv: readonly string[], reply: Reply): void {
    const [, id = '', leaseId = '', from = '', read = ''] = argv;
    const [kind] = reply as [number, unknown];
    if (kind === 2) this.#count('emit refused: not held');
    if (kind === 3) this.#count('emit refused: epoch');
    if (kind !== 1) return;
    const workflow = this.#of(id);
    const actions: [id: string, target: string][] = [];
    for (let i = 5 + Number(read); i < argv.length; i += 7) {
      actions.push([argv[i] ?? '', argv[i + 1] ?? '']);
      if (argv[i + 5] !== '') this.functions.called(id, argv[i + 6] ?? '', argv[i] ?? '');
    }
    const isKnown = ([action]: [string, string]) =>
      workflow.actions.has(action) || workflow.results.has(action);
    if (actions.every(isKnown)) {
      this.#count('emit found taken');
      return;
    }
    this.#step(workflow, leaseId, Number(from), 'emit');
    const sinceMs = this.#parts.nowMs();
    for (const [action, target] of actions)
      workflow.actions.set(action, { target, epoch: workflow.epoch++, sinceMs });
  }

  /** workflow, lease id, epoch, how many were read, these, state → kind, epoch */
  #updated(argv: readonly string[], reply: Reply): void {
    const [, id = '', leaseId = '', from = ''] = argv;
    const [kind] = reply as [number, unknown];
    if (kind !== 1) return;
    const workflow = this.#of(id);
    const update = { epoch: Number(from), leaseId, state: argv.at(-1) ?? '' };
    const { update: last } = workflow;
    if (last?.epoch === update.epoch && last.leaseId === leaseId && last.state === update.state) {
      this.#count('update found taken');
      return;
    }
    this.#step(workflow, leaseId, update.epoch, 'update');
    workflow.epoch++;
    workflow.update = update;
  }

  #unparked([, id = '', leaseId = '', from = '']: readonly string[], reply: Reply): void {
    const [kind, epoch] = reply as [number, unknown];
    if (kind !== 1) return;
    const workflow = this.#of(id);
    this.#step(workflow, leaseId, Number(from), 'unpark');
    this.#sight.lookAtActions(workflow);
    workflow.epoch = Number(epoch);
    this.#count('parked actions emitted anew');
  }

  /** workflow, lease id, epoch, …, successor, window → kind, epoch, fence */
  #handedOver(argv: readonly string[], reply: Reply): void {
    const [, id = '', leaseId = '', from = ''] = argv;
    const [kind, , fence] = reply as [number, unknown, number];
    if (kind !== 1) return;
    const workflow = this.#of(id);
    const successor = argv.at(-2) ?? '';
    this.#step(workflow, leaseId, Number(from), 'handoff', successor);
    this.#parts.granted(leaseKey(id), successor, fence);
    workflow.epoch++;
    Object.assign(workflow, { tenure: successor, successor, isBegun: false });
  }

  #deposed([, leaseId = '']: readonly string[], reply: Reply): void {
    if (!Array.isArray(reply)) return;
    const workflow = this.#of(String(reply[0]));
    if (workflow.tenure !== leaseId)
      this.#report('epochs', workflow.id, `${leaseId} was revoked, and has no tenure`);
    const isCutOff = this.#tenants.get(leaseId);
    this.#count(isCutOff?.() ? 'revoked while cut off' : 'revoked');
    Object.assign(workflow, { tenure: null, isBegun: false, isRevoked: true, successor: null });
  }

  #revived(reply: Reply): void {
    if (typeof reply !== 'string') return;
    this.#count('dead letter revived');
    this.#sight.lookAtActions(this.#of(reply));
  }

  /**
   * target, … → per action: 1, workflow, id, record, fence, tries; or 0, workflow, id, lease of it,
   * tenure
   */
  #taken([, target = '']: readonly string[], reply: Reply): void {
    if (!Array.isArray(reply)) return;
    for (const taken of reply as [number, string, string, string, number, number][]) {
      const [kind, id, action, record, fence] = taken;
      const given = { epoch: partsOf(record).epoch, isGivenBack: false };
      if (kind !== 1) this.#count('take refused: lease');
      else this.#given(this.#of(id), target, { fence, action, ...given }, record);
    }
  }

  #given(workflow: WorkflowRecord, target: string, hand: Hand, record: string): void {
    const { id, tenure, hands, actions } = workflow;
    const { fence, action, epoch } = hand;
    const { leaseId } = partsOf(record);
    const known = actions.get(action);
    const told = `action ${action} of ${id}`;
    if (known === undefined)
      this.#report('actions', id, `${told} was given out, and is not unresolved`);
    else if (known.epoch !== epoch)
      this.#report('actions', id, `${told} was given out with ${epoch}, not ${known.epoch}`);
    if (leaseId !== tenure)
      this.#report('actions', id, `${told} was given out, and its tenure is over`);
    const last = hands.get(target);
    if (last !== undefined && fence <= last.fence)
      this.#report('actions', id, `${told} was given out with ${fence} after ${last.fence}`);
    if (last !== undefined && last.action !== action && epoch <= last.epoch)
      this.#report('actions', id, `${told} was given out with epoch ${epoch} after ${last.epoch}`);
    if (last?.action === action) this.#count(last.isGivenBack ? 'tried again' : 'redelivered');
    hands.set(target, hand);
  }

  /** target; then workflow, fence, outcome, value, reason, error of each → 1 or 0 for each */
  #settled(argv: readonly string[], reply: Reply): void {
    if (!Array.isArray(reply)) return;
    const [, target = ''] = argv;
    for (const [i, done] of reply.entries()) {
      const [id = '', fence = '', outcome = ''] = argv.slice(2 + 6 * i);
      if (done !== 1) this.#count('settle refused: gone');
      else this.#concluded(this.#of(id), target, Number(fence), outcome);
    }
  }

  #concluded(workflow: WorkflowRecord, target: string, fence: number, outcome: string): void {
    const { id, hands, actions, results } = workflow;
    const hand = hands.get(target);
    if (hand === undefined || hand.fence !== fence) {
      this.#report('actions', id, `${fence} settled what ${hand?.fence ?? 'nobody'} has in hands`);
      return;
    }
    if (outcome === 'retry') {
      hand.isGivenBack = true;
      return;
    }
    if (results.has(hand.action))
      this.#report('actions', id, `action ${hand.action} of ${id} has two results`);
    if (outcome === 'dead') this.#count('dead letter');
    actions.delete(hand.action);
    results.set(hand.action, this.#parts.nowMs());
  }

  #step(
    workflow: WorkflowRecord,
    leaseId: string,
    epoch: number,
    what: string,
    holder = leaseId,
  ): void {
    const { id, tenure } = workflow;
    const named = this.#sight.holderOf(id);
    if (named !== holder)
      this.#report('epochs', id, `${what} of ${leaseId} was taken while ${named} had ${id}`);
    if (tenure !== leaseId)
      this.#report('epochs', id, `${what} of ${leaseId} was taken in the tenure of ${tenure}`);
    if (epoch !== workflow.epoch)
      this.#report('epochs', id, `${what} took epoch ${epoch} of ${id}, not ${workflow.epoch}`);
    workflow.update = null;
    workflow.steppedMs = this.#parts.nowMs();
  }

  #of(id: string): WorkflowRecord {
    const known = this.#workflows.get(id) ?? new WorkflowRecord(id);
    this.#workflows.set(id, known);
    return known;
  }

  /**
   * Where some of its keys were deleted and others not, actions may be lost, come again, or stay
   * where nobody finds them.
   */
  #report(invariant: Invariant, id: string, text: string): void {
    const isExcused = invariant !== 'epochs' && this.#workflows.get(id)?.isDamaged;
    if (isExcused) this.#count(`excused: ${invariant}`);
    else this.#parts.report(invariant, `workflow:${id}`, text);
  }

  #count(name: string): void {
    this.#parts.counters.add(name);
  }
}
