import type { Emitter } from './events.ts';

/** Beyond this many subjects for one emitter, the oldest is forgotten and can be reported again. */
const MAX_SUBJECTS = 1_000;
const reported = new WeakMap<Emitter, Set<string>>();

/**
 * Calls `emit` the first time `subject` is met with these events. For facts that stay as they are,
 * such as a record that cannot be read.
 */
export function once(events: Emitter, subject: string, emit: () => void): void {
  const subjects = reported.get(events) ?? new Set();
  reported.set(events, subjects);
  if (subjects.has(subject)) return;
  const [oldest] = subjects;
  if (subjects.size >= MAX_SUBJECTS && oldest !== undefined) subjects.delete(oldest);
  subjects.add(subject);
  emit();
}
