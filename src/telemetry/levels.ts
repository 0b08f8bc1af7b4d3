import type { EventName } from '../base/events.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * `error`: something that this instance is there for does not work. `warn`: it lost something, or may soon. `info`: it did
 * what it should, and ownership changed or was kept. `debug`: what happens all the time.
 */
export const LEVELS: Readonly<Record<EventName, LogLevel>> = {
  'lease.acquired': 'info',
  'lease.refused': 'info',
  'lease.renewed': 'info',
  'lease.extended': 'debug',
  'lease.uncertain': 'warn',
  'lease.confirmed': 'info',
  'lease.reasserted': 'warn',
  'lease.releasing': 'debug',
  'lease.released': 'info',
  'lease.abandoned': 'warn',
  'lease.transferred': 'info',
  'lease.lost': 'warn',
  'lease.revoked': 'warn',
  'lease.returned': 'warn',
  'leader.elected': 'info',
  'leader.lost': 'info',
  'leader.failed': 'error',
  'member.joined': 'info',
  'member.left': 'info',
  'member.draining': 'info',
  'member.undrained': 'info',
  'fleet.planned': 'debug',
  'fleet.asked': 'debug',
  'fleet.stalled': 'error',
  'fleet.resumed': 'info',
  'discovery.failed': 'warn',
  'session.added': 'info',
  'session.changed': 'info',
  'session.paused': 'info',
  'session.resumed': 'info',
  'session.removed': 'info',
  'session.unreadable': 'warn',
  'poll.done': 'debug',
  'poll.failed': 'warn',
  'poll.stuck': 'error',
  'poll.settled': 'info',
  'result.refused': 'warn',
  'result.failed': 'warn',
  'log.dropped': 'error',
  'loop.delayed': 'warn',
  'store.connected': 'info',
  'store.disconnected': 'warn',
  'store.forgot': 'warn',
  'store.quarantined': 'warn',
  'store.warned': 'warn',
  'listener.failed': 'error',
};
