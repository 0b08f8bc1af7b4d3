/** What was found, without the one more that was asked for to see whether there is more. */
export function pageOf<Row>(
  found: readonly Row[],
  size: number,
): { readonly page: readonly Row[]; readonly more: boolean } {
  return { page: found.slice(0, size), more: found.length > size };
}

/** The number that a position stands for: 0, which is before all of them, without one, and for what is none of ours. */
export function positionOf(position: string | undefined): number {
  return position !== undefined && /^\d{1,16}$/.test(position) ? Number(position) : 0;
}
