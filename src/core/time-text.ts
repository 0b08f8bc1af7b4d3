/** A length of time for people: `340 ms`, `27 s`, `5 min 10 s`, `2 h 5 min`, `13 d 4 h`. */
export function spanOf(ms: number): string {
  if (!Number.isFinite(ms)) return 'never';
  if (ms < 1_000) return `${Math.ceil(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined([minutes, 'min'], [seconds % 60, 's']);
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return joined([hours, 'h'], [minutes % 60, 'min']);
  return joined([Math.floor(hours / 24), 'd'], [hours % 24, 'h']);
}

function joined(...parts: readonly (readonly [number, string])[]): string {
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count} ${unit}`] : [])).join(' ');
}

/**
 * `840 ms`, `1.84 s`, `30.02 s`, `2 min 5.5 s`: to the millisecond, so that sums can be checked.
 */
export function exactly(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Number(((ms - minutes * 60_000) / 1_000).toFixed(3));
  if (minutes === 0) return `${seconds} s`;
  const hours = Math.floor(minutes / 60);
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
}
