/** Sessions and targets as JSON. */
import type { z } from 'zod';
import type { TargetRecord } from '../../../fleet/targets/target-record.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import type { intentSessionSchema, pollSessionSchema, targetRecordSchema } from './schemas.ts';

/** Without the process group, which only workers need. */
export function intentSessionJson(session: IntentSession): z.input<typeof intentSessionSchema> {
  const { kind, target, startMs = 0, losses = 0, failures = 0, detail } = session;
  const common = {
    id: session.id,
    tenant: session.tenant,
    key: target,
    state: session.state,
    reason: session.reason,
    outcome: session.outcome,
    worker: session.worker,
    slot: session.slot,
    clients: session.clients,
    createdAt: isoTime(session.createdAtMs),
    changedAt: isoTime(session.changedAtMs),
    revision: session.revision,
    losses,
    failures,
    progress: session.progress,
    detail: detail === undefined ? undefined : { ...detail },
  };
  if (session.type === 'start') return { kind, params: session.params, ...common };
  const { profile } = session;
  return kind === 'live'
    ? { kind: 'live', serviceRef: target, profile, ...common }
    : { kind: 'vod', recordingId: target, startMs, profile, ...common };
}

/** Further fields of the record are for poll handlers, and may be secret. */
export function targetRecordJson(target: TargetRecord): z.input<typeof targetRecordSchema> {
  const { id, url, everyMs, timeoutMs, command, isPaused, revision } = target;
  const shownUrl = url === undefined ? undefined : withoutCredentials(url);
  return { id, url: shownUrl, everyMs, timeoutMs, command, isPaused, revision };
}

/** A target in the form of `/api/v3/sessions`. */
export function pollSessionJson(target: TargetRecord): z.input<typeof pollSessionSchema> {
  return { ...targetRecordJson(target), kind: 'poll' };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
