/**
 * A copy of a value that is plain JSON data. Undefined for an instance of a class, such as a fetch
 * Response, for a value that contains itself, and for more than `maxChars` of JSON. A copy, because
 * the handler may change the value before it is written.
 */
export function plainCopy(value: unknown, maxChars: number): unknown {
  const budget = { chars: maxChars };
  try {
    const copied = copy(value, budget);
    return JSON.stringify(copied).length <= maxChars ? copied : undefined;
  } catch {
    // A getter that throws, too: then there is nothing to keep.
    return undefined;
  }
}

/** Thrown and caught here only: it ends the walk. */
const NOT_PLAIN = new Error('not plain data');

/** Counts at least one character for each value, so that a value that contains itself ends. */
function copy(value: unknown, budget: { chars: number }): unknown {
  budget.chars -= typeof value === 'string' ? value.length : 1;
  if (budget.chars < 0) throw NOT_PLAIN;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (Array.isArray(value)) return value.map((item) => copy(item, budget));
  if (typeof value !== 'object' || !isPlain(value)) throw NOT_PLAIN;
  const kept = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(
    kept.map(([name, field]) => {
      budget.chars -= name.length;
      return [name, copy(field, budget)];
    }),
  );
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
