/** Why a lease ended before its holder released it. */
export type LossReason =
  /** No renewal was confirmed before the local deadline. */
  | 'expired'
  /** The store names another holder or fence. */
  | 'taken_over'
  /** An operator revoked it. */
  | 'revoked'
  /** It was held for `maxHold`. */
  | 'max_hold'
  /** The store can no longer tell which process holds it: a `STORE_UNSUITABLE` says why. */
  | 'unsuitable';

/** Why a lease is over, for people. */
export const LOSS_TEXTS: Readonly<Record<LossReason | 'released', string>> = {
  expired: 'it was not renewed in time',
  taken_over: 'the store names another holder',
  revoked: 'it was revoked',
  max_hold: 'its maxHold has passed',
  unsuitable: 'the store is no longer fit for leases',
  released: 'it was released',
};
