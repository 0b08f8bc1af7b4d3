import { createHash } from 'node:crypto';

/** `device-000001`, …: ids that differ in their last characters only. */
export function deviceIds(count: number, from = 1): string[] {
  return Array.from({ length: count }, (_, i) => `device-${String(from + i).padStart(6, '0')}`);
}

/** The same UUIDs in every run. */
export function uuids(count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const hex = createHash('sha256').update(`uuid ${i}`).digest('hex');
    const parts = [
      hex.slice(0, 8),
      hex.slice(8, 12),
      `4${hex.slice(13, 16)}`,
      `a${hex.slice(17, 20)}`,
    ];
    return [...parts, hex.slice(20, 32)].join('-');
  });
}

/** A long prefix that all have in common, and no padding. */
export function prefixedIds(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `eu-west-1:building-7:floor-3:sensor:${i}`);
}
