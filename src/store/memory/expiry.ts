/** Returns the entry of a key. Removes an expired entry, and returns undefined. */
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
