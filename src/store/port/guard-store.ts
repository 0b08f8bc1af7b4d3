/**
 * The part of the port that a store in the user's own database offers: a lease and the user's rows
 * in one transaction.
 */
import type { KeepStep } from './run-store.ts';

export interface GuardStore {
  /**
   * The statement that guards a transaction of the user with a fence of a key. It raises an error,
   * `FENCE_STALE <seen> <holder>`, unless the fence is current. Once it has let the transaction
   * pass, no higher fence of the key is granted before that transaction has ended.
   */
  sql(key: string, fence: number): string;
  /**
   * The statement that keeps a step of a workflow in a transaction of the user, as `RunStore.keep`
   * does in one of its own. Until that transaction has ended, no other tenure begins. It raises an
   * error, `STEP_REFUSED <why>`, unless it has kept the step:
   * - `kept`: the workflow has a step of this name.
   * - `not-held [leaseId]`: another tenure has the workflow, or none.
   * - `full <steps> <signals> <bytes>`: the workflow has as many as it may have.
   */
  keepSql(workflow: string, step: Omit<KeepStep, 'isDone' | 'receives'>): string;
}
