/**
 * The part of the port that a store in the user's own database offers: a lease and the user's rows
 * in one transaction.
 */
export interface GuardStore {
  /**
   * The statement that guards a transaction of the user with a fence of a key. It raises an error,
   * `FENCE_STALE <seen> <holder>`, unless the fence is current. Once it has let the transaction
   * pass, no higher fence of the key is granted before that transaction has ended.
   */
  sql(key: string, fence: number): string;
}
