/**
 * Frames of `text/event-stream`. Values from outside must not end a line: they could write frames
 * of their own.
 */
import type { LoggedEvent } from '../../telemetry/event-log.ts';
import { printable } from '../../telemetry/facts.ts';

/** Why the server ends a stream. */
export type Bye = 'token-expired' | 'closing' | 'too-slow' | 'failed';

/** When a disconnected client should reconnect. */
const RETRY_MS = 1_000;

export const HELLO = `retry: ${RETRY_MS}\n\n`;
export const GAP = dataFrame('gap', {});

export function eventFrame(event: LoggedEvent): string {
  const id = printable(event.position);
  return `id: ${id}\nevent: ${printable(event.event)}\ndata: ${JSON.stringify(event)}\n\n`;
}

/**
 * Moves the client's `Last-Event-ID` on without an event. Without it, a client whose filter passes
 * few events would reconnect with a position that the log no longer has.
 */
export function positionFrame(position: string): string {
  return `id: ${printable(position)}\n\n`;
}

export function byeFrame(reason: Bye): string {
  return dataFrame('bye', { reason });
}

export function commentFrame(text: string): string {
  return `: ${printable(text)}\n\n`;
}

/** JSON has no line ends of its own, so `data` is one line. */
export function dataFrame(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
