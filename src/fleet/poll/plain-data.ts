/**
 * A copy of a value that is nothing but JSON data, or undefined: for an instance of a class, such as a fetch's Response,
 * for what contains itself, and for more than so many characters of JSON text. A copy, because whoever gave the value
 * may go on changing it before it is written.
 */
export function plainCopy(value: unknown, mostChars: number): unknown {
  const budget = { chars: mostChars };
  try {
    const copied = copy(value, budget);
    return JSON.stringify(copied).length <= mostChars ? copied : undefined;
  } catch {
    // Also a getter that throws: then there is nothing to keep.
    return undefined;
  }
}

/** Thrown and caught here only: it ends the walk wherever it is. */
const NOT_PLAIN = new Error('not plain data');

/** Counts at least one character for everything it meets, so that what contains itself comes to an end. */
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
