/** Returns a value as JSON text. Throws if it has none, as `undefined` or a function. */
export function asJson(value: unknown): string {
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`${typeof value} is not a JSON value`);
  return json;
}
