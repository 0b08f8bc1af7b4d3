/** As much of a random id as tells it from others. */
export function short(id: unknown): string | null {
  return typeof id === 'string' ? id.slice(0, 8) : null;
}
