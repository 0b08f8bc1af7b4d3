import { systemClock } from '../../../core/clock.ts';
import type { StoredResult } from '../../../fleet/poll/result-writer.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import { spanOf } from '../../ui/text.ts';

/** The outcome of the last poll or the state of the task, and its age. `owner`: of the target now. */
export function lastResultText(result: StoredResult | null, owner: string | null): string {
  if (result === null) return '-';
  const nowMs = systemClock.wallMs();
  const since = spanOf(Math.max(0, nowMs - result.at));
  const ago = `${since} ago`;
  const why = withoutCredentials(result.error ?? 'no reason given');
  const times = (result.failures ?? 0) > 1 ? `${result.failures} times in a row, ` : '';
  const next = result.nextAt === undefined ? '' : nextText(result.nextAt - nowMs, times);
  if (result.state !== undefined && owner !== result.by) return `not running, last seen ${ago}`;
  if (result.state === 'running') return `running for ${since}`;
  if (result.state === 'waiting')
    return `${result.ok ? `returned ${ago}` : `failed ${ago}: ${why}`}${next}`;
  if (result.state !== undefined) return `${result.state} since ${since}: ${why}`;
  if (!result.ok) return `failed ${ago}: ${why}${next}`;
  const { status } = (result.value ?? {}) as { status?: unknown };
  return `${typeof status === 'number' ? status : 'ok'} in ${spanOf(result.tookMs)}, ${ago}`;
}

/** When it is tried again after a failure. */
function nextText(inMs: number, times: string): string {
  return inMs > 0 ? ` (${times}next in ${spanOf(inMs)})` : ` (${times}next now)`;
}
