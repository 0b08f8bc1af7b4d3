/** Which stretch of time is looked at, and how it is moved. Times are milliseconds since 1970. */
export interface Span {
  readonly lengthMs: number;
  /** Its end; null: now, and it moves along. */
  readonly until: number | null;
}

/** Gaps are milliseconds long: one can look as closely as that. The log has the last day. */
const SHORTEST_MS = 200;
const LONGEST_MS = 24 * 3_600_000;

export const WINDOWS: readonly (readonly [name: string, lengthMs: number])[] = [
  ['1m', 60_000],
  ['5m', 300_000],
  ['15m', 900_000],
  ['1h', 3_600_000],
  ['6h', 21_600_000],
  ['24h', LONGEST_MS],
];

const DEFAULT_MS = 300_000;

export function endsOf({ lengthMs, until }: Span, now: number): { from: number; to: number } {
  const to = until ?? now;
  return { from: to - lengthMs, to };
}

/** `share` of its length into the future; into the past if negative. Who comes to the present stays with it. */
export function panned(span: Span, share: number, now: number): Span {
  const { to } = endsOf(span, now);
  const until = to + share * span.lengthMs;
  return { ...span, until: until >= now ? null : Math.round(until) };
}

/** Longer by `factor`; what is at `share` of it stays where it is, unless the present is followed. */
export function zoomed(span: Span, factor: number, share: number, now: number): Span {
  const lengthMs = Math.round(Math.min(LONGEST_MS, Math.max(SHORTEST_MS, span.lengthMs * factor)));
  if (span.until === null && factor > 1) return { lengthMs, until: null };
  const { from } = endsOf(span, now);
  const fixed = from + share * span.lengthMs;
  const until = fixed + (1 - share) * lengthMs;
  return { lengthMs, until: until >= now ? null : Math.round(until) };
}

/** So that all of a stretch is seen, with something around it. */
export function around(from: number, to: number, now: number): Span {
  const lengthMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, (to - from) * 3));
  const until = (from + to) / 2 + lengthMs / 2;
  return { lengthMs: Math.round(lengthMs), until: until >= now ? null : Math.round(until) };
}

/** As it stands in the address: `for=5m`, `until=1794771289139`. */
export function spanOfQuery(query: URLSearchParams): Span {
  const named = WINDOWS.find(([name]) => name === query.get('for'))?.[1];
  const lengthMs = named ?? (Number(query.get('for')) || DEFAULT_MS);
  const until = Number(query.get('until'));
  return {
    lengthMs: Math.min(LONGEST_MS, Math.max(SHORTEST_MS, lengthMs)),
    until: Number.isFinite(until) && until > 0 ? until : null,
  };
}

export function queryOf({ lengthMs, until }: Span): { for: string; until: string } {
  const name = WINDOWS.find(([, ms]) => ms === lengthMs)?.[0];
  const isDefault = lengthMs === DEFAULT_MS;
  return {
    for: isDefault ? '' : (name ?? String(lengthMs)),
    until: until === null ? '' : String(until),
  };
}

const STEPS_MS = [
  10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000,
];

/** Round moments, at most so many. `zoneMs`: how far the reader's clock is from UTC, so that hours are round for them. */
export function ticks(
  { from, to }: { from: number; to: number },
  most: number,
  zoneMs = 0,
): { stepMs: number; at: readonly number[] } {
  const stepMs = STEPS_MS.find((step) => (to - from) / step <= most) ?? (STEPS_MS.at(-1) as number);
  const first = Math.ceil((from + zoneMs) / stepMs) * stepMs - zoneMs;
  const count = Math.max(0, Math.floor((to - first) / stepMs) + 1);
  return { stepMs, at: Array.from({ length: count }, (_, i) => first + i * stepMs) };
}
