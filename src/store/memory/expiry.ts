/** What a map has under a key, unless its time is over: then it is forgotten. */
export function notExpired<T extends { expiresAtMs: number }>(
  from: Map<string, T>,
  key: string,
  nowMs: number,
): T | undefined {
  const found = from.get(key);
  if (found === undefined || found.expiresAtMs > nowMs) return found;
  from.delete(key);
  return undefined;
}
