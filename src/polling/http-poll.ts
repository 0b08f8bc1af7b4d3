import type { Clock } from '../base/clock.ts';
import type { Poll } from './schedule.ts';

export interface HttpPollOptions {
  allow?: readonly ('loopback' | 'private')[];
}

export function httpPoll(_options: HttpPollOptions & { clock: Clock; instanceId: string }): Poll {
  return () => {
    throw new Error('not here yet');
  };
}
