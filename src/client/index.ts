export type { Duration } from '../core/duration.ts';
export { ConfigError, HoldfastError } from '../core/errors.ts';
export { HoldfastApiError, NoAnswerError, WaitedError } from './api-error.ts';
export {
  type CallOptions,
  type ClientOptions,
  HoldfastClient,
  type WaitOptions,
} from './client.ts';
export type { FollowedFleet } from './fleet-feed.ts';
export type * from './messages.ts';
export type * from './operating-messages.ts';
export { OperatorClient } from './operator-client.ts';
export type { TargetsClient } from './targets-client.ts';
