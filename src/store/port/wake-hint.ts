/**
 * What a waiter is told when a key may be free: the key, and, where several are woken at once,
 * behind a line break in how many milliseconds to ask for it. No key has a line break in it.
 */
export interface WakeHint {
  readonly key: string;
  readonly inMs: number;
}

export function wakeHint({ key, inMs }: WakeHint): string {
  return inMs === 0 ? key : `${key}\n${inMs}`;
}

export function readWakeHint(message: string): WakeHint {
  const end = message.indexOf('\n');
  if (end < 0) return { key: message, inMs: 0 };
  const inMs = Number(message.slice(end + 1));
  return { key: message.slice(0, end), inMs: Number.isFinite(inMs) ? Math.max(0, inMs) : 0 };
}
