export type { Clock, Timer } from '../core/clock.ts';
export type { Duration } from '../core/duration.ts';
export { ConfigError, type ErrorClass, type ErrorKind, HoldfastError } from '../core/errors.ts';
export type { PortableClock } from '../core/portable-clock.ts';
export type { Random } from '../core/random.ts';
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
export type { Token } from './request.ts';
export type { TargetsClient } from './targets-client.ts';
