/** What happens, as `text/event-stream` has it. Nothing that comes from elsewhere can end a line: then it could write frames of its own. */

import type { LoggedEvent } from '../../telemetry/event-log.ts';
import { printable } from '../../telemetry/facts.ts';

/** Why the server ends a stream. */
export type Bye = 'token-expired' | 'closing' | 'too-slow' | 'failed';

/** Who was cut off comes back after this long. */
const RETRY_MS = 1_000;

export const HELLO = `retry: ${RETRY_MS}\n\n`;
export const GAP = dataFrame('gap', {});

export function eventFrame(event: LoggedEvent): string {
  const id = printable(event.position);
  return `id: ${id}\nevent: ${printable(event.event)}\ndata: ${JSON.stringify(event)}\n\n`;
}

/**
 * Tells how far the client has come, without telling of anything. One whose filter lets little through would otherwise come back with a
 * position that the log has long forgotten.
 */
export function placeFrame(position: string): string {
  return `id: ${printable(position)}\n\n`;
}

export function byeFrame(reason: Bye): string {
  return dataFrame('bye', { reason });
}

export function comment(text: string): string {
  return `: ${printable(text)}\n\n`;
}

/** Of what is made here; JSON has no line ends of its own. */
export function dataFrame(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
