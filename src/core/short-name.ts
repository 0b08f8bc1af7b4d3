/** An instance id as people can read it: its name and the part that chance made; anything else as it is. Apart from `ids.ts`, for browsers: that one asks the host. */
export function shortName(id: string): string {
  return id.replace(/^(.+)-\d{16,}-([0-9a-f]{8})$/, '$1-$2');
}
