/**
 * All workflows: claims them for orchestrators in this process, and lists, reads and revokes any.
 */

import { Batcher } from '../core/batcher.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError, OutcomeUnknownError } from '../core/errors.ts';
import { checkTargetId, randomUuid } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import type { Leases } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { refusalError } from '../lease/refusal-error.ts';
import { tracedAcquire } from '../lease/spans.ts';
import { LEASE_CLASSES } from '../lease/timings.ts';
import type { ReadReply } from '../store/port/lease-store.ts';
import {
  type LoadedRun,
  type RunSnapshot,
  type RunStore,
  runTopic,
} from '../store/port/run-store.ts';
import {
  type HistoryEntry,
  type WorkflowSnapshot,
  workflowKey,
} from '../store/port/workflow-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import { type ActionFailure, isUuid } from './action.ts';
import { DeadLetters } from './dead-letters.ts';
import {
  LeaseNotFoundError,
  WorkflowEndedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  WorkflowStepsError,
  WorkflowTakenError,
} from './errors.ts';
import { type CallResults, calledActions } from './kept-step.ts';
import { type BegunTenure, type Handoff, Orchestrator, RENEW_BELOW_MS } from './orchestrator.ts';
import type { ActionDefinitions } from './schema.ts';
import { skipForeign } from './skip-foreign.ts';
import { type WorkflowReader, WorkflowTenure } from './workflow-tenure.ts';

export interface ClaimOptions<A extends ActionDefinitions = ActionDefinitions> {
  /**
   * How long the store keeps the workflow for its orchestrator without a renewal; default 5
   * minutes.
   */
  ttl?: Duration;
  /** How long to wait for a workflow that another orchestrator holds; default 0: do not wait. */
  wait?: Duration;
  /** Ends the wait. */
  signal?: AbortSignal;
  /**
   * The return value of the last orchestrator's `handoff`. Within its window, no claim without it
   * succeeds.
   */
  handoff?: Handoff;
  /**
   * Emits the actions of a revoked tenure again. By default a claim after a revocation drops them.
   */
  resume?: boolean;
  /** The action types, with their targets and schemas; default any. */
  actions?: A;
}

/** The inbox of an instance is this and its id. */
const INBOX = 'workflow:';
const CLAIM_OPTIONS = new Set(['ttl', 'wait', 'signal', 'handoff', 'resume', 'actions']);
/** For requests without a lease, and so without timings of their own. */
const CALL = { timeoutMs: 5_000 };
/** Workflows in one read request. */
const MAX_READS = 200;
/** How often `begin` is sent when its answer is lost. */
const MAX_BEGIN_TRIES = 5;
/** How often the end of a workflow is looked for, in case a hint was lost. */
const RESULT_POLL_MS = 2_000;

/** A workflow, and whether its lease is held. */
export interface WorkflowView extends Omit<WorkflowSnapshot, 'inbox'> {
  readonly isHeld: boolean;
  /** The instance whose orchestrator holds it, or held it last; null if none has begun. */
  readonly instance: string | null;
  /** How long the lease lasts without a renewal; 0 if it is not held. */
  readonly expiresInMs: number;
  /** What its function does; null if no function runs it. */
  readonly run: RunSnapshot | null;
}

/** The workflow, and whether it was started just now or found. */
export interface StartOutcome {
  readonly id: string;
  readonly isNew: boolean;
}

export interface ResultOptions {
  /** Ends the wait. */
  signal?: AbortSignal | undefined;
}

/** The tenure that was ended, and when. */
export interface Revocation {
  readonly workflow_id: string;
  readonly lease_id: string;
  readonly reason: string;
  readonly revoked_at: string;
}

export class Workflows {
  /** Actions that failed as often as they may be tried. */
  readonly deadLetters: DeadLetters;
  readonly #rt: Runtime;
  readonly #leases: Leases;
  readonly #inbox: string;
  /** A process with many workflows gets many hints at once, and reads a workflow for each. */
  readonly #reader: WorkflowReader;
  /** The orchestrators of this process, by workflow. */
  readonly #orchestrators = new Map<string, Orchestrator>();
  readonly #hints: Subscription;

  constructor(rt: Runtime, leases: Leases) {
    this.#rt = rt;
    this.#leases = leases;
    this.#inbox = INBOX + rt.instanceId;
    this.#reader = new Batcher((ids) => rt.store.workflows.read(ids, CALL), MAX_READS);
    this.deadLetters = new DeadLetters(rt);
    this.#hints = new Subscription(rt, this.#inbox, (id) => this.#onHint(id));
  }

  /**
   * Becomes the one writer of a workflow, and creates it if there is none. Throws `LEASE_HELD`
   * while another orchestrator holds it, `STORE_QUARANTINED` while the store makes no new grants.
   */
  async claim<A extends ActionDefinitions = ActionDefinitions, S = unknown>(
    id: string,
    options: ClaimOptions<A> = {},
  ): Promise<Orchestrator<A, S>> {
    checkTargetId(id);
    checkKnown(options, CLAIM_OPTIONS);
    const { handoff, resume = false, actions = {} as A } = options;
    if (handoff !== undefined) await this.#checkHandoff(id, handoff);
    const leaseId = handoff?.new_lease_id ?? randomUuid(this.#rt.random);
    const asked = { ...leaseOptions(options), holder: leaseId };
    const timings = this.#leases.check(asked);
    await this.#hints.open();
    const attributes = { 'holdfast.key': id, 'holdfast.class': 'workflow' };
    const acquire = () => this.#leases.acquire(id, asked);
    const result = await tracedAcquire(this.#rt.tracing, attributes, acquire);
    if (!result.ok) throw refusalError(result);
    const tenure = new WorkflowTenure(result.lease, timings, this.#reader);
    try {
      const begun = await this.#begin(tenure, resume);
      return this.#orchestrate<A, S>(tenure, begun, actions);
    } catch (error) {
      // Another process has claimed with the same handoff just now: the store has this lease id as
      // theirs.
      if (error instanceof HandoffUsedError) tenure.lease.concede(leaseId);
      else await tenure.lease.release();
      throw error;
    }
  }

  /** Ends a tenure, wherever its orchestrator runs: the store refuses all its further steps. */
  async revokeLease(leaseId: string, reason: string): Promise<Revocation> {
    if (typeof reason !== 'string' || reason.trim() === '') {
      const rule = 'a revocation needs a reason: it is recorded in the history of the workflow';
      throw new ConfigError({ field: 'reason', value: reason, rule });
    }
    const { store, events } = this.#rt;
    const reply = await store.workflows.revoke(leaseId, { ...CALL, reason });
    if (reply.kind === 'not-found')
      throw new LeaseNotFoundError({ context: { lease_id: leaseId } });
    const { workflow } = reply;
    this.#leases.watchFreed('workflow', workflow);
    const revokedAt = new Date(reply.revokedAtMs).toISOString();
    events.emit('workflow.revoked', { workflow, leaseId, reason, revokedAt });
    return { workflow_id: workflow, lease_id: leaseId, reason, revoked_at: revokedAt };
  }

  /** Reads a workflow; null if there is none. */
  async get(id: string): Promise<WorkflowView | null> {
    const [view] = await this.#views([id]);
    return view ?? null;
  }

  /** All workflows, in the order of their ids; with `after`, those behind that id. */
  async *list({ after: first }: { after?: string } = {}): AsyncGenerator<WorkflowView, void, void> {
    for (let after = first; ; ) {
      const { ids, more } = await this.#rt.store.workflows.list({ ...CALL, after });
      for (const view of await this.#readableViews(ids)) if (view !== null) yield view;
      if (!more) return;
      after = ids.at(-1);
    }
  }

  /** The last thousand changes of a workflow, the oldest first. */
  async *history(id: string): AsyncGenerator<HistoryEntry, void, void> {
    checkTargetId(id);
    for (let after: string | undefined; ; ) {
      const { entries, more } = await this.#rt.store.workflows.history(id, { ...CALL, after });
      yield* entries;
      if (!more) return;
      after = entries.at(-1)?.position;
    }
  }

  /** Removes a workflow that is not held, with all its actions, results and history. */
  remove(id: string): Promise<'removed' | 'held' | 'absent'> {
    checkTargetId(id);
    return this.#rt.store.workflows.remove(id, CALL);
  }

  /**
   * Starts a workflow of a function, or finds the one of this id. Throws `WORKFLOW_TAKEN` if it
   * is not of that function. The input of a workflow that was found stays as it was.
   */
  async start(name: string, id: string, input: unknown = null): Promise<StartOutcome> {
    checkTargetId(name, 'function');
    checkTargetId(id);
    checkJson(input, 'input');
    const started = await this.#again(() => this.#runs.start(id, { function: name, input }, CALL));
    if (started.kind === 'started') {
      this.#rt.events.emit('workflow.started', { workflow: id, function: name });
      return { id, isNew: true };
    }
    if (started.function === name) return { id, isNew: false };
    throw new WorkflowTakenError({ workflow: id, found: started.function, wanted: name });
  }

  /**
   * Sends a signal to a workflow. The store keeps it until a line of the workflow waits for it, and
   * one line receives it. Throws `WORKFLOW_NOT_FOUND`, and keeps nothing, if there is no workflow.
   */
  async signal(id: string, name: string, value: unknown = null): Promise<void> {
    checkTargetId(id);
    checkTargetId(name, 'signal');
    checkJson(value, 'value');
    // The same signal is kept once, even if its answer was lost and it is sent again.
    const signal = { id: randomUuid(this.#rt.random), name, value };
    const reply = await this.#again(() => this.#runs.signal(id, signal, CALL));
    if (reply.kind === 'absent') throw new WorkflowNotFoundError({ workflow: id });
    if (reply.kind === 'ended') throw new WorkflowEndedError({ workflow: id });
    if (reply.kind === 'full') {
      const { steps, signals, bytes } = reply;
      throw new WorkflowStepsError({ workflow: id, steps, signals, bytes });
    }
    this.#rt.events.emit('workflow.signalled', { workflow: id, signal: name });
  }

  /** Resolves with what the workflow's function returned; throws `WORKFLOW_FAILED` if it failed. */
  async result(id: string, { signal }: ResultOptions = {}): Promise<unknown> {
    checkTargetId(id);
    const { clock } = this.#rt;
    let run = await this.#run(id);
    let wake = () => {};
    const hints = new Subscription(this.#rt, runTopic(run.function), (hinted) => {
      if (hinted === null || hinted === id) wake();
    });
    await hints.open();
    try {
      for (;;) {
        let isHinted = false;
        wake = () => {
          isHinted = true;
        };
        run = await this.#run(id);
        if (run.phase === 'done' || run.phase === 'failed') break;
        await new Promise<void>((resolve) => {
          if (isHinted || signal?.aborted) return resolve();
          const timer = clock.after(RESULT_POLL_MS, resolve);
          wake = () => {
            timer.cancel();
            resolve();
          };
          signal?.addEventListener('abort', wake, { once: true });
        });
        signal?.removeEventListener('abort', wake);
        signal?.throwIfAborted();
      }
    } finally {
      hints.close();
    }
    if (run.phase === 'done') return run.value;
    const { function: name, tries } = run;
    const failure = run.value as ActionFailure;
    throw new WorkflowFailedError({ workflow: id, function: name, tries, failure });
  }

  /** Runs the function of a failed workflow again. Steps that are kept are not taken again. */
  async restart(id: string): Promise<void> {
    checkTargetId(id);
    const reply = await this.#runs.restart(id, CALL);
    if (reply.kind === 'absent') throw new WorkflowNotFoundError({ workflow: id });
    if (reply.kind === 'restarted') return;
    const rule = `it has not failed: it is ${reply.phase}`;
    throw new ConfigError({ field: 'id', value: id, rule });
  }

  /**
   * What is kept of a workflow's function: its steps, and what it waits for; null if there is none.
   */
  async steps(id: string): Promise<LoadedRun | null> {
    checkTargetId(id);
    return this.#runs.load(id, CALL);
  }

  /** The results that are kept of the calls of a workflow's function: of the last hundred. */
  async callResults(id: string, { steps }: Pick<LoadedRun, 'steps'>): Promise<CallResults> {
    const actions = calledActions(id, steps);
    const { workflows } = this.#rt.store;
    const results = await Promise.all(actions.map((one) => workflows.resultOf(id, one, CALL)));
    return new Map(
      results.flatMap((result) => (result === null ? [] : [[result.actionId, result]])),
    );
  }

  /** Releases all workflows of this process, and ends the subscription. */
  async close(): Promise<void> {
    const releases = [...this.#orchestrators.values()].map((one) => one.release());
    await Promise.all(releases);
    this.#hints.close();
  }

  async #run(id: string): Promise<RunSnapshot> {
    const [run = null] = await this.#again(() => this.#runs.read([id], CALL));
    if (run === null) throw new WorkflowNotFoundError({ workflow: id });
    return run;
  }

  /** Sends a request that may be sent twice again, if its answer is lost. */
  async #again<R>(send: () => Promise<R>): Promise<R> {
    for (let tries = 1; ; tries++) {
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof OutcomeUnknownError) || tries === MAX_BEGIN_TRIES) throw error;
      }
    }
  }

  get #runs(): RunStore {
    return this.#rt.store.runs;
  }

  /** Leaves out a workflow that a non-Holdfast program has overwritten, and reports it once. */
  async #readableViews(ids: readonly string[]): Promise<(WorkflowView | null)[]> {
    try {
      return await this.#views(ids);
    } catch (error) {
      skipForeign(this.#rt.events, error);
      if (ids.length === 1) return [];
      return (await Promise.all(ids.map((id) => this.#readableViews([id])))).flat();
    }
  }

  async #views(ids: readonly string[]): Promise<(WorkflowView | null)[]> {
    const { store } = this.#rt;
    const [found, leases, runs] = await Promise.all([
      store.workflows.read(ids, CALL),
      store.leases.read(ids.map(workflowKey), CALL),
      store.runs.read(ids, CALL),
    ]);
    return found.map((one, i) => (one === null ? null : viewOf(one, leases[i], runs[i] ?? null)));
  }

  /** A handoff is for one tenure: a second claim with it would share the lease of the first. */
  async #checkHandoff(id: string, handoff: Handoff): Promise<void> {
    const { workflowId, new_lease_id: leaseId } = handoff;
    if (workflowId !== id || !isUuid(leaseId)) {
      const rule = `it must be what handoff() of '${id}' returned`;
      throw new ConfigError({ field: 'handoff', value: workflowId, rule });
    }
    for await (const entry of this.history(id))
      if (entry.what.kind === 'claimed' && entry.leaseId === leaseId)
        throw new HandoffUsedError(id);
  }

  /** Sent again if the answer is lost: the same tenure begins only once. */
  async #begin(tenure: WorkflowTenure, resume: boolean): Promise<BegunTenure> {
    const { workflow, leaseId, lease, timeoutMs } = tenure;
    const request = { leaseId, fence: lease.fence, inbox: this.#inbox, resume };
    for (let tries = 1; ; tries++) {
      try {
        const reply = await this.#rt.store.workflows.begin(workflow, request, { timeoutMs });
        if (reply.kind === 'begun') return reply;
        if (reply.leaseId === leaseId) throw new HandoffUsedError(workflow);
        throw tenure.violation(reply.leaseId);
      } catch (error) {
        if (!(error instanceof OutcomeUnknownError) || tries === MAX_BEGIN_TRIES) throw error;
      }
    }
  }

  #orchestrate<A extends ActionDefinitions, S>(
    tenure: WorkflowTenure,
    begun: BegunTenure,
    actions: A,
  ): Orchestrator<A, S> {
    const { workflow, leaseId } = tenure;
    const orchestrator = new Orchestrator<A, S>(this.#rt, tenure, begun, actions);
    const known = orchestrator as Orchestrator;
    const forget = () => {
      if (this.#orchestrators.get(workflow) === known) this.#orchestrators.delete(workflow);
    };
    tenure.signal.addEventListener('abort', forget, { once: true });
    this.#orchestrators.set(workflow, known);
    this.#rt.events.emit('workflow.claimed', {
      workflow,
      leaseId,
      epoch: begun.workflow.epoch,
      reemitted: begun.reemitted.length,
      dropped: begun.dropped.length,
    });
    return orchestrator;
  }

  /** Null: hints may have been missed, of any workflow. */
  #onHint(id: string | null): void {
    const hinted = id === null ? [...this.#orchestrators.values()] : [this.#orchestrators.get(id)];
    for (const orchestrator of hinted) orchestrator?.hear().catch(() => {});
  }
}

class HandoffUsedError extends ConfigError {
  constructor(id: string) {
    const rule = 'the workflow has been claimed with it before: claim it without, once it is free';
    super({ field: 'handoff', value: id, rule });
  }
}

/** A TTL of two minutes or more is renewed when a minute is left. */
function leaseOptions({ ttl, wait, signal }: ClaimOptions): AcquireOptions {
  const common = { class: 'workflow' as const, ...(wait && { wait }), ...(signal && { signal }) };
  if (ttl === undefined) return common;
  const ttlMs = durationMs(ttl, 'ttl');
  if (ttlMs < 2 * RENEW_BELOW_MS) return { ...common, ttl };
  const { guard } = LEASE_CLASSES.workflow.timings;
  return { ...common, ttl, renewEvery: ttlMs - RENEW_BELOW_MS, ...(guard && { guard }) };
}

function checkJson(value: unknown, field: string): void {
  try {
    if (JSON.stringify(value) !== undefined) return;
  } catch {
    // A cycle, or a BigInt.
  }
  throw new ConfigError({ field, value: typeof value, rule: 'it must be JSON' });
}

function viewOf(
  { inbox, ...found }: WorkflowSnapshot,
  lease: ReadReply | undefined,
  run: RunSnapshot | null,
): WorkflowView {
  const isHeld = lease?.kind === 'held' && lease.holder === found.leaseId;
  const instance = inbox?.startsWith(INBOX) ? inbox.slice(INBOX.length) : null;
  return { ...found, isHeld, instance, expiresInMs: isHeld ? lease.expiresInMs : 0, run };
}
