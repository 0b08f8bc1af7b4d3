/** The text of a value; throws for what is no JSON. */
export function asJson(value: unknown): string {
  const json: string | undefined = JSON.stringify(value);
  if (json === undefined) throw new TypeError(`${typeof value} is no JSON value`);
  return json;
}
