/** Tells of something that stays as it is, such as a record that nobody can read: once, however often it is met. */
import type { Emitter } from './events.ts';

/** What was told, for each who listens. Beyond this many the oldest is forgotten, and told again when it is met. */
const MOST_TOLD = 1_000;
const told = new WeakMap<Emitter, Set<string>>();

/** `subject` says what it is about; `tell` is called unless that was told before. */
export function once(events: Emitter, subject: string, tell: () => void): void {
  const known = told.get(events) ?? new Set();
  told.set(events, known);
  if (known.has(subject)) return;
  const [oldest] = known;
  if (known.size >= MOST_TOLD && oldest !== undefined) known.delete(oldest);
  known.add(subject);
  tell();
}
