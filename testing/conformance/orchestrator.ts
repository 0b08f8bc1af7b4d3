import assert from 'node:assert/strict';
import {
  actionStream,
  type BeginReply,
  type HistoryEntry,
  type NewAction,
  type Settlement,
  type StoredResult,
  type Taken,
  workflowKey,
} from '../../src/store/port/workflow-store.ts';
import { CALL, type Kit, LONG_MS } from './kit.ts';

export type Begun = Extract<BeginReply, { kind: 'begun' }>;
export type Reserved = Extract<Taken, { kind: 'reserved' }>;

/** One tenure of a workflow in the hands of a test, with processors for what it emits. */
export class Orchestrator {
  readonly kit: Kit;
  readonly id: string;
  readonly leaseId: string;
  readonly target: string;
  fence = 0;
  epoch = 0;

  constructor(kit: Kit, { name = 'a', leaseId = 'tenure-1' } = {}) {
    this.kit = kit;
    this.id = workflowId(kit, name);
    // No two workflows have the same one.
    this.leaseId = kit.topic(`${leaseId}-of-${name}`);
    this.target = kit.topic('target');
  }

  get store() {
    return this.kit.store.workflows;
  }

  get key(): string {
    return workflowKey(this.id);
  }

  get inbox(): string {
    return this.kit.topic('orchestrator');
  }

  get ref() {
    return { leaseId: this.leaseId, epoch: this.epoch, read: [] as string[] };
  }

  async acquire(ttlMs = LONG_MS): Promise<this> {
    this.fence = await this.kit.granted(this.key, this.leaseId, { ttlMs });
    return this;
  }

  async tryBegin(resume = false): Promise<BeginReply> {
    const { leaseId, fence, inbox } = this;
    const reply = await this.store.begin(this.id, { leaseId, fence, inbox, resume }, CALL);
    if (reply.kind === 'begun') this.epoch = reply.workflow.epoch;
    return reply;
  }

  async begin(resume = false): Promise<Begun> {
    const reply = await this.tryBegin(resume);
    assert(reply.kind === 'begun', JSON.stringify(reply));
    return reply;
  }

  action(id: string, more: Partial<NewAction> = {}): NewAction {
    return { id, target: this.target, priority: 5, body: `{"id":"${id}"}`, ...more };
  }

  async tryEmit(actions: readonly NewAction[], more: { epoch?: number; read?: string[] } = {}) {
    return this.store.emit(this.id, { ...this.ref, ...more, actions }, CALL);
  }

  /** Emits actions, which must be taken, and expects the epoch that follows. */
  async emit(...ids: (string | NewAction)[]): Promise<void> {
    const actions = ids.map((each) => (typeof each === 'string' ? this.action(each) : each));
    const epoch = this.epoch + actions.length;
    assert.deepEqual(await this.tryEmit(actions), { kind: 'done', epoch });
    this.epoch = epoch;
  }

  async update(state: unknown, epoch = this.epoch) {
    const reply = await this.store.update(this.id, { ...this.ref, epoch, state }, CALL);
    if (reply.kind === 'done') this.epoch = reply.epoch;
    return reply;
  }

  /** Hands the tenure to another, which has not begun yet. */
  async handOff(leaseId = 'tenure-2', windowMs = LONG_MS): Promise<Orchestrator> {
    const next = new Orchestrator(this.kit, { name: nameOf(this), leaseId });
    const step = { ...this.ref, successor: next.leaseId, windowMs };
    const reply = await this.store.handoff(this.id, step, CALL);
    assert(reply.kind === 'done', JSON.stringify(reply));
    [next.fence, next.epoch] = [reply.fence, reply.epoch];
    return next;
  }

  revoke(reason = 'because') {
    return this.store.revoke(this.leaseId, { ...CALL, reason });
  }

  async read() {
    const [found] = await this.store.read([this.id], CALL);
    assert(found !== undefined);
    return found;
  }

  async results(): Promise<readonly StoredResult[]> {
    return (await this.store.results(this.id, CALL)).results;
  }

  async history(): Promise<readonly HistoryEntry[]> {
    return (await this.store.history(this.id, CALL)).entries;
  }

  // ---- The processors -----------------------------------------------------------------------

  take(most = 10, { claimMs = LONG_MS, target = this.target } = {}): Promise<Taken[]> {
    return this.store.take(target, { ...CALL, consumer: 'processor', most, claimMs });
  }

  /** Takes what must be one action. */
  async takeOne(options: { claimMs?: number; target?: string } = {}): Promise<Reserved> {
    const [taken, ...more] = await this.take(10, options);
    assert(taken?.kind === 'reserved' && more.length === 0, JSON.stringify([taken, ...more]));
    return taken;
  }

  reserve(
    ref: { id: string; epoch: number; leaseId?: string },
    { strict = false, claimMs = LONG_MS } = {},
  ): Promise<Taken> {
    const action = { workflow: this.id, leaseId: this.leaseId, ...ref };
    const strictness = strict ? 'strict' : 'monotonic';
    return this.store.reserve(this.target, action, {
      ...CALL,
      consumer: 'processor',
      claimMs,
      strictness,
    });
  }

  async settle({ workflow, fence, action }: Reserved, how: Partial<Settlement> = {}) {
    const settlement = { workflow, fence, outcome: 'succeeded', value: action.id, ...how };
    const [reply] = await this.store.settle(action.target, [settlement as Settlement], CALL);
    return reply;
  }

  async finish(how: Partial<Settlement> = {}): Promise<Reserved> {
    const taken = await this.takeOne();
    assert.equal(await this.settle(taken, how), 'done');
    return taken;
  }

  die(): Promise<Reserved> {
    return this.finish({ outcome: 'dead', value: 'too often', reason: 'poison' });
  }

  /** Revives the only dead action. */
  async revive() {
    const { entries } = await this.kit.store.streams.dead(actionStream(this.target), CALL);
    return this.store.revive(this.target, entries[0]?.id ?? '', CALL);
  }
}

/** Ids of one test stand together in a list. */
export function workflowId(kit: Kit, name: string): string {
  return `${kit.topic('workflow')}-${name}`;
}

function nameOf({ kit, id }: Orchestrator): string {
  return id.slice(workflowId(kit, '').length);
}

/** A workflow that has just begun. */
export async function begun(kit: Kit, name = 'a'): Promise<Orchestrator> {
  const orchestrator = await new Orchestrator(kit, { name }).acquire();
  await orchestrator.begin();
  return orchestrator;
}

/** The next tenure after one that released its lease, or lost it. */
export async function succeed(
  before: Orchestrator,
  { leaseId = 'tenure-2', resume = false } = {},
): Promise<{ next: Orchestrator; reply: Begun }> {
  const { kit, key, fence } = before;
  await kit.release(key, before.leaseId, fence);
  const next = await new Orchestrator(kit, { name: nameOf(before), leaseId }).acquire();
  return { next, reply: await next.begin(resume) };
}

export function idsOf(actions: readonly { id: string; epoch: number }[]): [string, number][] {
  return actions.map(({ id, epoch }) => [id, epoch]);
}

/** What was taken, by action and epoch. */
export function takenOf(taken: readonly Taken[]): [string, number][] {
  return taken.flatMap((each) => (each.kind === 'reserved' ? idsOf([each.action]) : []));
}
