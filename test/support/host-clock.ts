/** Milliseconds on the one monotonic clock that all processes of this host share. */
export function hostMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
