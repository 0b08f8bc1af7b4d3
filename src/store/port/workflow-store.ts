/**
 * Workflows with one writer: the part of the port that keeps them. Each verb is one atomic step,
 * and each looks first whether its caller may take it.
 *
 * A workflow has an **epoch**, which grows by one with every action and every change of state, and
 * never otherwise changes; and a **tenure**, named by a `leaseId`. Its orchestrator holds the lease
 * `workflowKey(id)` with the `leaseId` as holder. A step of the orchestrator is taken only if the
 * store names this holder for the lease, *and* the workflow is in the tenure of this `leaseId`,
 * *and* the epoch is the one it expects. So a late step changes nothing,
 * whichever process sends it.
 *
 * **Actions** are emitted to a target: they go into the stream `actionStream(target)`, in the lane
 * of their workflow. An action is **unresolved** until its result is in. Their processors take them
 * with `take`, or one by one with `reserve`. `reserve` checks lease and epoch, and reserves the
 * action durably before a processor works on it. `settle` stores the result, in one step with all
 * that follows from it. An unresolved action is either in its stream or **parked**: kept, but given
 * to no processor until a tenure emits it again.
 *
 * The **results** of a workflow wait, in order, until its orchestrator has read them, which it says
 * with its next step: each step that is answered with `done` has marked them. All unread results
 * answer a repeated request for the same action, and so do the last `RESULTS_KEPT`. The
 * **history** has the last `HISTORY_KEPT` steps.
 */
import type { RunPhase, StepKind } from './run-store.ts';
import type { Call } from './store.ts';
import type { HeldReply } from './stream-store.ts';

export interface WorkflowStore {
  /**
   * Begins a tenure. Makes the workflow if there is none: epoch 0, state `initialized`. All
   * unresolved actions are emitted again by the same step, in the order of their epochs: same id,
   * this `leaseId`, new epochs, one each. One that is in a processor's hands stays there, and its
   * new epoch is the lowest of its target; it has this epoch if it has to be given out again. Asked
   * again by the same tenure, it only says how things are.
   *
   * After a revocation the unresolved actions are dropped instead, also those in a processor's
   * hands, unless `resume` is set.
   */
  begin(id: string, request: BeginRequest, call: Call): Promise<BeginReply>;
  /**
   * Emits actions with the epochs from `epoch` on. One whose id the workflow knows already,
   * unresolved or resolved, is not emitted again: if all are known, the reply is as it was,
   * whatever the epoch; so the same request may be sent twice. Refused as `full`, with nothing
   * written, if more than `UNRESOLVED_MOST` actions would be unresolved, or if these and the unread
   * results would be more than `UNREAD_MOST`. What the step marks as read does not count.
   */
  emit(id: string, step: EmitStep, call: Call): Promise<StepReply>;
  /**
   * Sets the state. Sent again when it was taken already (`epoch` + 1, the same tenure and state),
   * it says so.
   */
  update(id: string, step: UpdateStep, call: Call): Promise<StepReply>;
  /** Marks results as read. Neither checks nor changes the epoch. */
  markRead(id: string, step: Tenancy, call: Call): Promise<StepReply>;
  /** Emits the parked actions again, as `begin` would. Takes one epoch each. */
  unpark(id: string, step: Step, call: Call): Promise<StepReply>;
  /**
   * Hands the tenure to `successor`, another `leaseId`: the lease names it for `windowMs`, with a
   * new fence, and the epoch grows by one. The giver can take no further step. Actions that no
   * processor has are parked until the successor begins, or the next tenure after the window.
   */
  handoff(id: string, step: HandoffStep, call: Call): Promise<HandoffReply>;
  /**
   * Ends the tenure of this `leaseId`, wherever its orchestrator runs: frees the lease, with a
   * higher fence, and parks as above.
   */
  revoke(leaseId: string, call: RevokeTenureCall): Promise<RevokeTenureReply>;
  /**
   * Takes up to `most` actions for a processor; what may not be worked on is told, parked, and
   * never in the way.
   */
  take(target: string, call: TakeCall): Promise<Taken[]>;
  /** Takes one action that its caller has in hand, if it is the one whose turn it is. */
  reserve(target: string, action: ActionRef, call: ReserveCall): Promise<Taken>;
  /** Says that a processor is still at it. */
  extend(
    target: string,
    held: readonly HeldAction[],
    call: Call & { claimMs: number },
  ): Promise<HeldReply[]>;
  /** Brings outcomes in. */
  settle(target: string, settlements: readonly Settlement[], call: Call): Promise<HeldReply[]>;
  /**
   * Parks a dead action again, and tells its orchestrator, which emits it again. `absent` if there
   * is no such action, its workflow is gone, or has an action of that id under way.
   */
  revive(
    target: string,
    deadId: string,
    call: Call,
  ): Promise<{ kind: 'revived'; workflow: string } | { kind: 'absent' }>;
  read(ids: readonly string[], call: Call): Promise<(WorkflowSnapshot | null)[]>;
  /** Unread results after a position, the oldest first; from the oldest without one. */
  results(id: string, call: ResultsCall): Promise<ResultsPage>;
  /** One action's result, if it is in and still known. */
  resultOf(id: string, actionId: string, call: Call): Promise<StoredResult | null>;
  /** The oldest first. */
  history(id: string, call: HistoryCall): Promise<HistoryPage>;
  /** One page of ids, in order. */
  list(
    call: WorkflowListCall,
  ): Promise<{ readonly ids: readonly string[]; readonly more: boolean }>;
  /** Removes a workflow that no orchestrator holds. */
  remove(id: string, call: Call): Promise<'removed' | 'held' | 'absent'>;
}

// ---- The orchestrator's steps ----

export interface Tenancy {
  readonly leaseId: string;
  /** Positions of results that have been read. */
  readonly read: readonly string[];
}

export interface Step extends Tenancy {
  /** The workflow's epoch, as the orchestrator knows it. */
  readonly epoch: number;
}

export interface BeginRequest {
  readonly leaseId: string;
  /** The fence that this `leaseId` holds the lease with. */
  readonly fence: number;
  /**
   * The topic on which the orchestrator hears of results, of a revocation, and of revived actions.
   * Each message is the workflow's id.
   */
  readonly inbox: string;
  readonly resume: boolean;
}

export type BeginReply =
  | {
      readonly kind: 'begun';
      readonly workflow: WorkflowSnapshot;
      /** The actions emitted again, with their new epochs, in order. */
      readonly reemitted: readonly StoredAction[];
      readonly dropped: readonly StoredAction[];
    }
  | NotHeld;

export interface EmitStep extends Step {
  readonly actions: readonly NewAction[];
}

export interface UpdateStep extends Step {
  readonly state: unknown;
}

export interface HandoffStep extends Step {
  readonly successor: string;
  readonly windowMs: number;
}

export type StepReply =
  /** The workflow's epoch now. */
  | { readonly kind: 'done'; readonly epoch: number }
  | NotHeld
  /** It has another epoch than expected. */
  | { readonly kind: 'epoch'; readonly epoch: number }
  /**
   * There would be more than `UNRESOLVED_MOST` or `UNREAD_MOST`: how many there are, without what
   * the step marks as read.
   */
  | { readonly kind: 'full'; readonly unresolved: number; readonly unread: number };

export type HandoffReply =
  | { readonly kind: 'done'; readonly epoch: number; readonly fence: number }
  | Exclude<StepReply, { kind: 'done' | 'full' }>;

/**
 * This `leaseId` does not hold the lease, or the workflow is in another tenure. `leaseId` names the
 * holder, or is null.
 */
export interface NotHeld {
  readonly kind: 'not-held';
  readonly leaseId: string | null;
}

export interface RevokeTenureCall extends Call {
  readonly reason: string;
}

export type RevokeTenureReply =
  | { readonly kind: 'revoked'; readonly workflow: string; readonly revokedAtMs: number }
  /** No workflow is in the tenure of such a `leaseId`. */
  | { readonly kind: 'not-found' };

// ---- Actions ----

export interface NewAction {
  readonly id: string;
  readonly target: string;
  readonly priority: number;
  /** What never changes of it, as JSON; the store does not look into it. */
  readonly body: string;
  /** For the history: its type, and the size of its payload in bytes. */
  readonly about?: { readonly type: string; readonly bytes: number } | undefined;
  /** The step of the workflow's function that emits it. Kept with the action, as a `call`. */
  readonly step?: { readonly name: string; readonly value: unknown } | undefined;
}

export interface StoredAction extends Omit<NewAction, 'about' | 'step'> {
  readonly leaseId: string;
  readonly epoch: number;
}

/**
 * As `role` of its processor has it: a reducer takes an action only if it is the first that it has
 * not applied yet.
 */
export type Strictness = 'monotonic' | 'strict';

export interface TakeCall extends Call {
  readonly consumer: string;
  readonly most: number;
  readonly claimMs: number;
}

export interface ReserveCall extends Call {
  readonly consumer: string;
  /** 0 only looks: `reserved` then says that it could be, with fence 0, and nothing has changed. */
  readonly claimMs: number;
  readonly strictness: Strictness;
}

/** An action as its processor describes it. */
export interface ActionRef {
  readonly workflow: string;
  readonly id: string;
  readonly leaseId: string;
  readonly epoch: number;
}

export interface HeldAction {
  readonly workflow: string;
  readonly fence: number;
}

/**
 * What came of an attempt to take an action. Lease first, then epoch:
 *
 * - `lease`: the workflow is in another tenure than the action's, or in none (null), or unknown.
 * - `replay`: the action has been settled; this is its result.
 * - `stale`: something with this epoch or a higher one was already taken by this target, or the
 *   a processor has the action; or it is not the action that was emitted with its epoch.
 * - `future`: nothing has been emitted with this epoch yet; or, for a strict target, one before it
 *   has not been applied; or, for any, one before it in its lane is unresolved.
 *
 * `take` chooses the actions that are due, so of these it returns only `lease`: for an action whose
 * claim expires after its tenure was revoked or handed over, and after a loss of data.
 */
export type Taken =
  | {
      readonly kind: 'reserved';
      readonly workflow: string;
      readonly action: StoredAction;
      readonly fence: number;
      readonly tries: number;
    }
  | {
      readonly kind: 'lease';
      readonly workflow: string;
      readonly id: string;
      readonly received: string;
      readonly expected: string | null;
    }
  | { readonly kind: 'replay'; readonly result: StoredResult }
  | {
      readonly kind: 'stale' | 'future';
      readonly workflow: string;
      readonly id: string;
      readonly epoch: number;
      /** The epoch that it was compared with. */
      readonly current: number;
    };

/**
 * - `succeeded`, `failed`: this is the result.
 * - `retry`: it is given out again after a while.
 * - `dead`: as `failed`, and it is put aside among the dead of its stream, with `reason`; its value
 *   there is the `StoredAction`.
 */
export type Settlement = HeldAction &
  (
    | { readonly outcome: 'succeeded' | 'failed'; readonly value: unknown }
    /** `error`, if there is one, goes into the history. */
    | { readonly outcome: 'retry'; readonly afterMs: number; readonly error?: string | undefined }
    | { readonly outcome: 'dead'; readonly value: unknown; readonly reason: string }
  );

// ---- Snapshots, results, history ----

export interface WorkflowSnapshot {
  readonly id: string;
  /** Whose tenure it is in; null after a revocation. The lease may have run out meanwhile. */
  readonly leaseId: string | null;
  /** The inbox of the orchestrator that began this tenure; null if none has begun it. */
  readonly inbox: string | null;
  readonly epoch: number;
  readonly state: unknown;
  readonly unresolved: number;
  readonly parked: number;
  readonly unread: number;
  /** On the store's wall clock. */
  readonly createdAtMs: number;
  readonly changedAtMs: number;
}

export interface StoredResult {
  /** Opaque. `results` continues after it. */
  readonly position: string;
  readonly actionId: string;
  readonly target: string;
  /** The epoch of the action. */
  readonly epoch: number;
  readonly outcome: 'succeeded' | 'failed' | 'dead';
  readonly value: unknown;
  readonly atMs: number;
}

export interface ResultsCall extends Call {
  readonly after?: string | undefined;
  /** Default and limit `RESULTS_PAGE`. */
  readonly most?: number;
}

export interface ResultsPage {
  readonly results: readonly StoredResult[];
  readonly more: boolean;
}

export interface HistoryCall extends Call {
  readonly after?: string | undefined;
  readonly most?: number;
}

export interface HistoryPage {
  readonly entries: readonly HistoryEntry[];
  readonly more: boolean;
}

export interface HistoryEntry {
  readonly position: string;
  readonly atMs: number;
  /** The workflow's epoch after it. */
  readonly epoch: number;
  readonly leaseId: string | null;
  readonly what:
    | { readonly kind: 'claimed'; readonly reemitted: number; readonly dropped: number }
    | {
        readonly kind: 'emitted';
        readonly actionId: string;
        readonly target: string;
        /** Absent in entries of earlier versions. */
        readonly type?: string;
        readonly payloadBytes?: number;
      }
    | {
        readonly kind: 'reemitted' | 'dropped';
        readonly actionId: string;
        readonly target: string;
      }
    /** One try failed, and another follows. */
    | {
        readonly kind: 'retried';
        readonly actionId: string;
        readonly target: string;
        readonly tries: number;
        readonly error: string;
      }
    | { readonly kind: 'started'; readonly function: string }
    | {
        readonly kind: 'kept';
        readonly name: string;
        readonly step: StepKind;
        readonly isDone: boolean;
      }
    | { readonly kind: 'signalled'; readonly name: string }
    | { readonly kind: 'paused'; readonly phase: RunPhase; readonly detail: string }
    | { readonly kind: 'restarted' }
    | {
        readonly kind: 'updated';
        /** Null, with `omittedBytes`, where it has more than `HISTORY_STATE_MOST` bytes of JSON. */
        readonly state: unknown;
        readonly omittedBytes?: number;
      }
    | {
        readonly kind: 'settled';
        readonly actionId: string;
        readonly target: string;
        readonly outcome: StoredResult['outcome'];
        /** How often it was tried, and why it failed; absent if it succeeded. */
        readonly tries?: number;
        readonly error?: string;
      }
    | { readonly kind: 'transferred'; readonly successor: string; readonly transferEpoch: number }
    | { readonly kind: 'revoked'; readonly reason: string }
    | { readonly kind: 'revived'; readonly actionId: string; readonly target: string };
}

export interface WorkflowListCall extends Call {
  /** The last id of the page before. */
  readonly after?: string | undefined;
  readonly most?: number;
}

/** The state of a workflow that has just been made. */
export const FIRST_STATE = 'initialized';
/** Actions without a result, per workflow. */
export const UNRESOLVED_MOST = 1_000;
/**
 * Unread results and actions without a result, per workflow: each of these becomes a result that
 * waits to be read.
 */
export const UNREAD_MOST = 10_000;
export const RESULTS_KEPT = 1_000;
export const HISTORY_KEPT = 1_000;
/**
 * Of a state, in bytes of JSON: the history keeps no larger one. So the history of a workflow has a
 * few MB at most.
 */
export const HISTORY_STATE_MOST = 4_096;
/** Of an error in the history, in characters. */
export const HISTORY_ERROR_MOST = 500;
export const RESULTS_PAGE = 100;
export const HISTORY_PAGE = 1_000;
export const WORKFLOWS_PAGE = 1_000;

/** The error of a settlement as the history has it; empty for none. */
export function historyError(settlement: Settlement): string {
  if (settlement.outcome === 'succeeded') return '';
  if (settlement.outcome === 'retry') return (settlement.error ?? '').slice(0, HISTORY_ERROR_MOST);
  const { value } = settlement;
  const message =
    typeof value === 'object' && value !== null && 'message' in value ? value.message : value;
  return String(message ?? '').slice(0, HISTORY_ERROR_MOST);
}

/** The key of the lease whose holder may write a workflow. */
export function workflowKey(id: string): string {
  return `workflow:lease:${id}`;
}

/** The stream of what a target has to do. */
export function actionStream(target: string): string {
  return `action:${target}`;
}
