/** How many lanes fit beside each other, and how large squares can be, so that a whole fleet is seen at once. */

export interface DenseLayout {
  /** Lanes beside each other. */
  readonly columns: number;
  /** Of the squares in a lane, in pixels. */
  readonly width: number;
  /** From one square to the next. */
  readonly step: number;
  /** Many lanes: what stands above the squares is as short as can be. */
  readonly isCrowded: boolean;
}

/** The largest that fits is taken, the smallest where none does. */
const STEPS = [26, 22, 18, 16, 14, 12, 10, 9, 8, 7, 6];
const GAP = 8;
/** Border and padding of a lane, and what stands above its squares. */
const INSET = 18;
const HEAD = 76;
const CROWDED_HEAD = 62;
const CROWDED_FROM = 25;

export function layoutFor({
  lanes,
  targets,
  width,
  height,
}: {
  lanes: number;
  targets: number;
  width: number;
  height: number;
}): DenseLayout {
  const isCrowded = lanes >= CROWDED_FROM;
  const least = isCrowded ? 108 : lanes > 8 ? 200 : 280;
  const head = isCrowded ? CROWDED_HEAD : HEAD;
  const fitting = Math.max(1, Math.floor((width + GAP) / (least + GAP)));
  const rows = Math.max(1, Math.ceil(lanes / fitting));
  const columns = Math.max(1, Math.ceil(lanes / rows));
  const inner = Math.floor((width - (columns - 1) * GAP) / columns) - INSET;
  const perLane = Math.ceil(targets / Math.max(1, lanes));
  const step = STEPS.find((size) => {
    const high = Math.ceil(perLane / Math.max(1, Math.floor(inner / size))) * size;
    return rows * (high + head) <= height;
  });
  return { columns, width: inner, step: step ?? 6, isCrowded };
}
