import { systemClock } from '../../../core/clock.ts';
import type { StoredResult } from '../../../fleet/poll/result-writer.ts';
import { withoutCredentials } from '../../../telemetry/facts.ts';
import { spanOf } from '../../ui/text.ts';

/** The outcome of the last poll, and its age. */
export function lastResultText(result: StoredResult | null): string {
  if (result === null) return '-';
  const ago = `${spanOf(Math.max(0, systemClock.wallMs() - result.at))} ago`;
  if (!result.ok) return `failed ${ago}: ${withoutCredentials(result.error ?? 'no reason given')}`;
  const { status } = (result.value ?? {}) as { status?: unknown };
  return `${typeof status === 'number' ? status : 'ok'} in ${spanOf(result.tookMs)}, ${ago}`;
}
