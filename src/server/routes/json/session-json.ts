/** Sessions as clients see them. */
import type { z } from 'zod';
import type { TargetRecord } from '../../../fleet/targets/target-record.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import type { intentSessionSchema, pollSessionSchema } from './schemas.ts';

/** But for the process group that runs for it: that is between its workers. */
export function intentSessionJson(session: IntentSession): z.input<typeof intentSessionSchema> {
  const { id, tenant, profile, state, reason, outcome, worker, slot } = session;
  const { target, startMs = 0, clients, createdAtMs, changedAtMs, revision } = session;
  const { losses = 0, progress, detail } = session;
  const common = {
    id,
    tenant,
    profile,
    state,
    reason,
    outcome,
    worker,
    slot,
    clients,
    createdAt: moment(createdAtMs),
    changedAt: moment(changedAtMs),
    revision,
    losses,
    ...(progress !== undefined && { progress }),
    ...(detail !== undefined && { detail: { ...detail } }),
  };
  return session.kind === 'live'
    ? { kind: 'live', serviceRef: target, ...common }
    : { kind: 'vod', recordingId: target, startMs, ...common };
}

/** What else its record says is for handlers, and may hold their secrets. */
export function pollSessionJson(session: TargetRecord): z.input<typeof pollSessionSchema> {
  const { id, url, everyMs, isPaused, revision } = session;
  return {
    id,
    kind: 'poll',
    ...(url !== undefined && { url: withoutCredentials(url) }),
    ...(everyMs !== undefined && { everyMs }),
    isPaused,
    revision,
  };
}

function moment(ms: number): string {
  return new Date(ms).toISOString();
}
