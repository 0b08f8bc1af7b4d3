/** What states and reasons of sessions mean, for whoever has to do something about one. As docs/intents.md and docs/workers.md have it. */
import type { RunSession, SessionState } from '../../../../src/client/messages.ts';

export const STATES: readonly SessionState[] = ['NEW', 'STARTING', 'RUNNING', 'STOPPING', 'ENDED'];

export const STATE_MEANS: Readonly<Record<SessionState, string>> = {
  NEW: 'It waits for a worker.',
  STARTING: 'A worker has it, and takes the leases it needs.',
  RUNNING: 'Its pipeline runs, under its leases.',
  STOPPING: 'Nobody needs it any more, or it can not go on; its pipeline is told to end.',
  ENDED: 'Nothing of it runs, and it never changes again.',
};

export const REASON_MEANS: Readonly<Record<string, string>> = {
  R_STOPPED: 'Its last client stopped it.',
  R_LEASE_BUSY: 'Another session has the channel. It can be started once that has ended.',
  R_NO_TUNER: 'Every slot of the pool was taken. Free one, or have more.',
  R_LEASE_EXPIRED:
    'Its worker lost a lease while it ran: it stood still, the lease was revoked, or the store was away.',
  R_PIPELINE_ENDED: 'What it ran ended by itself.',
  R_PIPELINE_FAILED: 'What it ran failed: the exit code and the last lines say how.',
  R_WORKER_LOST: 'Its worker died, and nobody could go on with it.',
};

const GOOD_REASONS = new Set(['R_STOPPED', 'R_PIPELINE_ENDED']);

/** How to mark it: what runs is well, what has ended otherwise than it should is not. */
export function toneOf({ state, reason }: Pick<RunSession, 'state' | 'reason'>): string {
  if (reason !== null && !GOOD_REASONS.has(reason)) return 'bad';
  if (state === 'RUNNING') return 'good';
  return state === 'ENDED' ? '' : 'warn';
}

const SIGNS: Readonly<Record<SessionState, string>> = {
  NEW: '◌',
  STARTING: '◔',
  RUNNING: '●',
  STOPPING: '◑',
  ENDED: '■',
};

export function signOf(state: SessionState): string {
  return SIGNS[state];
}

/** What it runs: the channel, or the recording. */
export function refOf(session: RunSession): string {
  return session.kind === 'live' ? session.serviceRef : session.recordingId;
}
