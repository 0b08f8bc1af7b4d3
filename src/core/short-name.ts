/**
 * An instance id without its start time; any other text unchanged. Not in `ids.ts`, which does not
 * run in browsers.
 */
export function shortName(id: string): string {
  return id.replace(/^(.+)-\d{16,}-([0-9a-f]{8})$/, '$1-$2');
}
