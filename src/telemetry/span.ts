/** A span of time for people: `340 ms`, `27 s`, `5 min 10 s`, `2 h 5 min`. */
export function spanOf(ms: number): string {
  if (!Number.isFinite(ms)) return 'never';
  if (ms < 1_000) return `${Math.ceil(ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return joined([minutes, 'min'], [seconds % 60, 's']);
  return joined([Math.floor(minutes / 60), 'h'], [minutes % 60, 'min']);
}

function joined(...parts: readonly (readonly [number, string])[]): string {
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count} ${unit}`] : [])).join(' ');
}
