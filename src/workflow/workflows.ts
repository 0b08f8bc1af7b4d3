/** The door to workflows: who is to write one claims it here. */

import { Batcher } from '../core/batcher.ts';
import type { Clock } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError, OutcomeUnknownError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { checkTargetId, randomUuid } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import type { Random } from '../core/random.ts';
import { type Tracing, untraced } from '../core/tracing.ts';
import { LEASE_CLASSES } from '../lease/classes.ts';
import type { Lease } from '../lease/lease.ts';
import type { Leases } from '../lease/leases.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { refusalError } from '../lease/refusal-error.ts';
import { tracedAcquire } from '../lease/traced-leases.ts';
import type { ReadReply } from '../store/port/lease-store.ts';
import type { Store } from '../store/port/store.ts';
import {
  type BeginReply,
  type HistoryEntry,
  type WorkflowSnapshot,
  workflowKey,
} from '../store/port/workflow-store.ts';
import { actionOf, isUuid } from './action.ts';
import { DeadLetters } from './dead-letters.ts';
import { LeaseNotFoundError, LeaseViolationError } from './errors.ts';
import { type Handoff, Orchestrator, RENEW_BELOW_MS } from './orchestrator.ts';
import type { ActionDefinitions } from './schema.ts';
import { skipForeign } from './skip-foreign.ts';

export interface ClaimOptions<A extends ActionDefinitions = ActionDefinitions> {
  /** How long the store keeps the workflow for its orchestrator without a renewal; default 5 minutes. */
  ttl?: Duration;
  /** How long to wait for a workflow that another has; default 0: do not. */
  wait?: Duration;
  /** Ends the wait. */
  signal?: AbortSignal;
  /** What `handoff` of the orchestrator before returned: only with it is the workflow to be had within the window. */
  handoff?: Handoff;
  /** After a revocation what the revoked tenure had emitted is dropped; with this it is emitted anew, as after any other end. */
  resume?: boolean;
  /** What actions there are, and what they look like; default any. */
  actions?: A;
}

const CLAIM_OPTIONS = new Set(['ttl', 'wait', 'signal', 'handoff', 'resume', 'actions']);
/** For what has no lease, and so no timings of its own. */
const CALL = { timeoutMs: 5_000 };
/** How many workflows are asked about in one request. */
const READ_MOST = 200;
/** How often a claim whose answer was lost is asked about. */
const BEGIN_ATTEMPTS = 5;

/** A workflow as people and other programs may look at it. */
export interface WorkflowView extends WorkflowSnapshot {
  /** Whether somebody holds it just now, and for how long yet without a renewal. */
  readonly isHeld: boolean;
  readonly expiresInMs: number;
}

/** What was ended, and when. */
export interface Revocation {
  readonly workflow_id: string;
  readonly lease_id: string;
  readonly reason: string;
  readonly revoked_at: string;
}

export interface WorkflowsParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly leases: Leases;
  readonly tracing?: Tracing;
  readonly instanceId: string;
}

export class Workflows {
  /** Actions that were tried as often as they may be. */
  readonly deadLetters: DeadLetters;
  readonly #parts: WorkflowsParts;
  readonly #inbox: string;
  /** A process that holds many workflows hears of many at once, and each hint may mean that something else has happened. */
  readonly #reading: Batcher<string, WorkflowSnapshot | null>;
  /** Those this process holds, by workflow. */
  readonly #held = new Map<string, Orchestrator>();
  #listening: Promise<void> | null = null;
  #unsubscribe: () => void = () => {};
  #isClosed = false;

  constructor(parts: WorkflowsParts) {
    this.#parts = parts;
    this.#inbox = `workflow:${parts.instanceId}`;
    this.#reading = new Batcher((ids) => parts.store.workflows.read(ids, CALL), READ_MOST);
    this.deadLetters = new DeadLetters(parts);
  }

  /**
   * Becomes the one writer of a workflow, which is made if there is none; throws `LEASE_HELD` while it is another's,
   * `STORE_QUARANTINED` while the store grants nothing.
   */
  async claim<A extends ActionDefinitions = ActionDefinitions>(
    id: string,
    options: ClaimOptions<A> = {},
  ): Promise<Orchestrator<A>> {
    checkTargetId(id);
    checkKnown(options, CLAIM_OPTIONS);
    const { leases, random, tracing = untraced } = this.#parts;
    const { handoff, resume = false, actions = {} as A } = options;
    if (handoff !== undefined) await this.#checkHandoff(id, handoff);
    const leaseId = handoff?.new_lease_id ?? randomUuid(random);
    const asked = { ...leaseOptions(options), holder: leaseId };
    const { ttlMs, operationTimeoutMs: timeoutMs } = leases.check(asked);
    await this.#listen();
    const attributes = { 'holdfast.key': id, 'holdfast.class': 'workflow' };
    const ask = () => leases.acquire(id, asked);
    const result = await tracedAcquire(tracing, attributes, ask);
    if (!result.ok) throw refusalError(result);
    const { lease } = result;
    try {
      const begun = await this.#begin(lease, resume, timeoutMs);
      return this.#orchestrator({ lease, ttlMs, timeoutMs, actions }, begun);
    } catch (error) {
      // Somebody else has claimed it with the same handoff just now: what the store has in this name is theirs.
      if (error instanceof HandoffUsedError) lease.concede(leaseId);
      else await lease.release();
      throw error;
    }
  }

  /** Ends a tenure, whoever and wherever its orchestrator is: from now on everything it sends is refused. */
  async revokeLease(leaseId: string, reason: string): Promise<Revocation> {
    if (typeof reason !== 'string' || reason.trim() === '') {
      const rule = 'a revocation needs a reason, for whoever finds it later';
      throw new ConfigError({ field: 'reason', value: reason, rule });
    }
    const { store, events } = this.#parts;
    const reply = await store.workflows.revoke(leaseId, { ...CALL, reason });
    if (reply.kind === 'not-found')
      throw new LeaseNotFoundError({ context: { lease_id: leaseId } });
    const { workflow } = reply;
    this.#parts.leases.expectTaken('workflow', workflow);
    const revokedAt = new Date(reply.revokedAtMs).toISOString();
    events.emit('workflow.revoked', { workflow, leaseId, reason, revokedAt });
    return { workflow_id: workflow, lease_id: leaseId, reason, revoked_at: revokedAt };
  }

  /** How a workflow is; null if there is none. */
  async get(id: string): Promise<WorkflowView | null> {
    const [view] = await this.#views([id]);
    return view ?? null;
  }

  /** All there are, in the order of their ids; or those after one. */
  async *list({ after: first }: { after?: string } = {}): AsyncGenerator<WorkflowView, void, void> {
    for (let after = first; ; ) {
      const call = { ...CALL, ...(after !== undefined && { after }) };
      const { ids, more } = await this.#parts.store.workflows.list(call);
      for (const view of await this.#readableViews(ids)) if (view !== null) yield view;
      if (!more) return;
      after = ids.at(-1);
    }
  }

  /** What has happened to a workflow, the oldest first: the last thousand things. */
  async *history(id: string): AsyncGenerator<HistoryEntry, void, void> {
    checkTargetId(id);
    for (let after: string | undefined; ; ) {
      const call = { ...CALL, ...(after !== undefined && { after }) };
      const { entries, more } = await this.#parts.store.workflows.history(id, call);
      yield* entries;
      if (!more) return;
      after = entries.at(-1)?.position;
    }
  }

  /** Forgets a workflow that nobody holds, and all that belongs to it. */
  remove(id: string): Promise<'removed' | 'held' | 'absent'> {
    checkTargetId(id);
    return this.#parts.store.workflows.remove(id, CALL);
  }

  /** Lets go of all that this process holds, and listens no more. */
  async close(): Promise<void> {
    await Promise.all([...this.#held.values()].map((orchestrator) => orchestrator.release()));
    this.#isClosed = true;
    this.#unsubscribe();
  }

  /** One that another program has overwritten is told of, once, and left out: it does not keep anybody from the others. */
  async #readableViews(ids: readonly string[]): Promise<(WorkflowView | null)[]> {
    try {
      return await this.#views(ids);
    } catch (error) {
      skipForeign(this.#parts.events, error);
      if (ids.length === 1) return [];
      return (await Promise.all(ids.map((id) => this.#readableViews([id])))).flat();
    }
  }

  async #views(ids: readonly string[]): Promise<(WorkflowView | null)[]> {
    const { store } = this.#parts;
    const [found, leases] = await Promise.all([
      store.workflows.read(ids, CALL),
      store.leases.read(ids.map(workflowKey), CALL),
    ]);
    return found.map((one, i) => (one === null ? null : asView(one, leases[i])));
  }

  /** A handoff is for one tenure: a second that began with it would share its lease with the first. */
  async #checkHandoff(id: string, handoff: Handoff): Promise<void> {
    const { workflowId, new_lease_id: leaseId } = handoff;
    if (workflowId !== id || !isUuid(leaseId)) {
      const rule = `it is what handoff() of '${id}' returned`;
      throw new ConfigError({ field: 'handoff', value: workflowId, rule });
    }
    for await (const entry of this.history(id))
      if (entry.what.kind === 'claimed' && entry.leaseId === leaseId)
        throw new HandoffUsedError(id);
  }

  /** Asked more than once if the answer is lost: the same tenure begins once. */
  async #begin(lease: Lease, resume: boolean, timeoutMs: number): Promise<Begun> {
    const { store } = this.#parts;
    const request = { leaseId: lease.holder, fence: lease.fence, inbox: this.#inbox, resume };
    for (let attempt = 1; ; attempt++) {
      try {
        const reply = await store.workflows.begin(lease.key, request, { timeoutMs });
        if (reply.kind === 'begun') return reply;
        if (reply.leaseId === lease.holder) throw new HandoffUsedError(lease.key);
        throw new LeaseViolationError({
          context: {
            workflow_id: lease.key,
            expected_lease: reply.leaseId,
            received_lease: lease.holder,
          },
        });
      } catch (error) {
        if (!(error instanceof OutcomeUnknownError) || attempt === BEGIN_ATTEMPTS) throw error;
      }
    }
  }

  #orchestrator<A extends ActionDefinitions>(
    held: { lease: Lease; ttlMs: number; timeoutMs: number; actions: A },
    { workflow, reemitted, dropped }: Begun,
  ): Orchestrator<A> {
    const { id, epoch, state } = workflow;
    const orchestrator = new Orchestrator<A>({
      ...this.#parts,
      ...held,
      ...{ epoch, state },
      reemitted: reemitted.map((action) => actionOf(id, action)),
      dropped: dropped.map((action) => actionOf(id, action)),
      read: () => this.#reading.submit(id),
      onOver: () => {
        if (this.#held.get(id) === (orchestrator as Orchestrator)) this.#held.delete(id);
      },
    });
    this.#held.set(id, orchestrator as Orchestrator);
    this.#parts.events.emit('workflow.claimed', {
      ...{ workflow: id, leaseId: orchestrator.leaseId, epoch },
      ...{ reemitted: reemitted.length, dropped: dropped.length },
    });
    return orchestrator;
  }

  /** Hints only: one that can not be listened for now is made up for by looking now and then. */
  #listen(): Promise<void> {
    const { signals } = this.#parts.store;
    const hear = (id: string) =>
      void this.#held
        .get(id)
        ?.hear()
        .catch(() => {});
    const onGap = () => {
      for (const id of this.#held.keys()) hear(id);
    };
    this.#listening ??= signals
      .subscribe(this.#inbox, { onMessage: hear, onGap })
      .then((unsubscribe) => {
        this.#unsubscribe = unsubscribe;
        if (this.#isClosed) unsubscribe();
      })
      .catch(() => {
        this.#listening = null;
      });
    return this.#listening;
  }
}

type Begun = Extract<BeginReply, { kind: 'begun' }>;

class HandoffUsedError extends ConfigError {
  constructor(id: string) {
    const rule = 'the workflow has been claimed with it before: claim it without, once it is free';
    super({ field: 'handoff', value: id, rule });
  }
}

/** Renewed when less than a minute is left, where there is more than that. */
function leaseOptions({ ttl, wait, signal }: ClaimOptions): AcquireOptions {
  const common = { class: 'workflow' as const, ...(wait && { wait }), ...(signal && { signal }) };
  if (ttl === undefined) return common;
  const ttlMs = durationMs(ttl, 'ttl');
  if (ttlMs < 2 * RENEW_BELOW_MS) return { ...common, ttl };
  const { guard } = LEASE_CLASSES.workflow.timings;
  return { ...common, ttl, renewEvery: ttlMs - RENEW_BELOW_MS, ...(guard && { guard }) };
}

function asView(found: WorkflowSnapshot, lease: ReadReply | undefined): WorkflowView {
  const isHeld = lease?.kind === 'held' && lease.holder === found.leaseId;
  return { ...found, isHeld, expiresInMs: isHeld ? lease.expiresInMs : 0 };
}
