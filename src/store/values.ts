import { sized } from './port/limits.ts';

/** Cuts a page out of rows that were read with LIMIT `size + 1`. */
export function pageOf<Row>(
  found: readonly Row[],
  size: number,
): { readonly page: readonly Row[]; readonly more: boolean } {
  return { page: found.slice(0, size), more: found.length > size };
}

/** Returns the number of a position; 0, which is before all, if it is absent or malformed. */
export function positionOf(position: string | undefined): number {
  return position !== undefined && /^\d{1,16}$/.test(position) ? Number(position) : 0;
}

/** Returns a value as JSON text. Throws if it has none, as `undefined` or a function. */
export function asJson(value: unknown): string {
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`${typeof value} is not a JSON value`);
  return json;
}

/**
 * Returns the value of a record as JSON text. A value that is not JSON is an error of this record
 * alone. Throws if the value is too large.
 */
export function recordJson(name: string, value: unknown): string | Error {
  let json: string;
  try {
    json = asJson(value);
  } catch (error) {
    return error as Error;
  }
  return sized('record', name, json);
}
