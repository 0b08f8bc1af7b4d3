/** The workflows in a store, read without a client. */
import type { Reply } from '../../src/store/redis/client/wire.ts';
import { pairsOf, partsOf, type WorkflowRecord } from './workflow-record.ts';

/** Asks a store, and needs no connection. */
export type Peek = (args: readonly string[]) => Reply;

/** What stands before all keys of workflows. */
const HUB = '{holdfast}:';

export function leaseKey(id: string): string {
  return `${HUB}workflow:lease:${id}`;
}

export class WorkflowSight {
  readonly #peek: Peek;
  readonly #nowMs: () => number;

  constructor(peek: Peek, nowMs: () => number) {
    this.#peek = peek;
    this.#nowMs = nowMs;
  }

  /** Whom the store names for its lease now. */
  holderOf(id: string): string | null {
    return this.#peek(['GET', leaseKey(id)]) as string | null;
  }

  /** As the store knows it now. */
  lookAt(workflow: WorkflowRecord): void {
    const { id } = workflow;
    const fields = ['lease', 'epoch', 'begun', 'revoked', 'updated', 'state'];
    const facts = this.#peek(['HMGET', `${HUB}workflow:facts:${id}`, ...fields]);
    const [tenure = null, epoch, begun, revoked, updated, state] = facts as (string | null)[];
    const isBegun = begun === '1';
    Object.assign(workflow, { tenure, epoch: Number(epoch), isBegun, isRevoked: revoked === '1' });
    workflow.successor = isBegun ? null : tenure;
    workflow.update =
      tenure !== null && updated === epoch && updated !== null
        ? { epoch: Number(updated) - 1, leaseId: tenure, state: state ?? '' }
        : null;
    this.lookAtActions(workflow);
    this.#lookAtHands(workflow);
  }

  /** What is unresolved, and what of the results is still known. */
  lookAtActions(workflow: WorkflowRecord): void {
    const { id, actions, results } = workflow;
    const found = this.#peek(['HGETALL', `${HUB}workflow:actions:${id}`]) as string[];
    const sinceMs = this.#nowMs();
    actions.clear();
    for (const [action, record] of pairsOf(found)) {
      const { target, epoch } = partsOf(record);
      actions.set(action, { target, epoch, sinceMs });
      results.delete(action);
    }
    for (const action of results.keys())
      if (this.#peek(['HGET', `${HUB}workflow:results:${id}`, action]) === null)
        results.delete(action);
  }

  #lookAtHands(workflow: WorkflowRecord): void {
    const { id, hands } = workflow;
    hands.clear();
    const targets = this.#peek(['HKEYS', `${HUB}workflow:targets:${id}`]);
    for (const target of targets as string[]) {
      const state = this.#peek(['HGET', `${HUB}stream:lanes:action:${target}`, id]);
      const [, fence] = /^h (\d+)/.exec(String(state)) ?? [];
      const lane = `${HUB}stream:lane:{action:${target}}:${id}`;
      const [first] = this.#peek(['LRANGE', lane, '0', '0']) as string[];
      if (fence === undefined || first === undefined) continue;
      const action = first.slice(first.indexOf(' ') + 1);
      hands.set(target, { fence: Number(fence), action, epoch: -1, isGivenBack: false });
    }
  }
}
