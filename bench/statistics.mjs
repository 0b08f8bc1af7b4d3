/** Milliseconds on a clock that all processes of a host share. */
export function monotonicMs() {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function median(values) {
  return quantile(values, 0.5);
}

/** The value below which this share of the values lies, between the two nearest where it falls between them. */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  const above = sorted[Math.ceil(at)];
  return below + (above - below) * (at - Math.floor(at));
}
