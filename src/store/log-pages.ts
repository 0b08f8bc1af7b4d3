import { SIZE_LIMITS, sized } from './port/limits.ts';
import { LOG_PAGE, type LogEntry, type LogPage } from './port/log-store.ts';

/** The log of every store has its entries as text, in pages. */

/** Entries have no names: so much of the text shows which one it is. */
const NAMED = 80;

/** How many entries a page has. */
export function pageSize(most: number = LOG_PAGE): number {
  return Math.min(Math.max(1, Math.floor(most)), LOG_PAGE);
}

/**
 * The text of each value. Throws for a value that is not JSON or too large, before any is added.
 */
export function asEntries(values: readonly unknown[]): string[] {
  return values.map((value) => {
    const json: string | undefined = JSON.stringify(value);
    if (json === undefined) throw new TypeError(`an entry of the log is ${typeof value}, not JSON`);
    return sized('log entry', json.slice(0, NAMED), json);
  });
}

/**
 * A page of the entries found, which are one more than its size if there is more. An entry of
 * another program keeps its place, without a value.
 */
export function pageOf(
  found: readonly (readonly [position: string, json: string])[],
  size: number,
  gap: boolean,
): LogPage {
  const entries = found.slice(0, size).map(([position, json]): LogEntry => {
    return { position, value: jsonValue(json) };
  });
  return { entries, more: found.length > size, gap };
}

/** Undefined for a text that is not JSON, or larger than an entry may be. */
function jsonValue(json: string): unknown {
  if (json.length > SIZE_LIMITS['log entry']) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
