/** What of a lane is to be drawn: whatever falls into the window, as shares of its width, and nothing too small to be seen on its own. */
import type { Gap } from '../../data/gaps.ts';
import type { Tenure } from '../../data/tenures.ts';

export interface Place {
  readonly left: number;
  readonly width: number;
}

export type Piece =
  | (Place & {
      readonly kind: 'tenure';
      readonly tenure: Tenure;
      /** Its beginning is not known: it is older than what was read. */
      readonly isOpenLeft: boolean;
      readonly isOpenRight: boolean;
    })
  | (Place & { readonly kind: 'gap'; readonly gap: Gap })
  /** Several of either, too close together: so many changes of hands. */
  | (Place & { readonly kind: 'crowd'; readonly gaps: readonly Gap[] });

export interface Window {
  readonly from: number;
  readonly to: number;
  /** The present: nothing is drawn beyond it. */
  readonly now: number;
}

export function placeOf(from: number, to: number, window: Window): Place | null {
  const end = Math.min(window.to, window.now);
  if (to < window.from || from > end) return null;
  const length = window.to - window.from;
  const left = (Math.max(from, window.from) - window.from) / length;
  const right = (Math.min(to, end) - window.from) / length;
  return { left, width: Math.max(0, right - left) };
}

/**
 * If a lease expired, the bar ends with the last sign of life and the gap begins there: no other instance could take the target yet, but its owner
 * did not work on it either. `closest`: gaps nearer to each other than this share of the width become a crowd.
 */
export function piecesOf(
  tenures: readonly Tenure[],
  gaps: readonly Gap[],
  window: Window,
  closest: number,
): readonly Piece[] {
  const begins = new Map(gaps.map(({ before, from }) => [before, from]));
  const bars = tenures.flatMap((tenure): Piece[] => {
    const { from, ending } = tenure;
    const until = begins.get(tenure) ?? ending?.at ?? Number.POSITIVE_INFINITY;
    const place = placeOf(from ?? Number.NEGATIVE_INFINITY, until, window);
    if (place === null) return [];
    const isOpenLeft = from === null;
    return [{ kind: 'tenure', tenure, isOpenLeft, isOpenRight: ending === null, ...place }];
  });
  const between = gaps.flatMap((gap): Piece[] => {
    const place = placeOf(gap.from, gap.until ?? Number.POSITIVE_INFINITY, window);
    return place === null ? [] : [{ kind: 'gap', gap, ...place }];
  });
  return crowded(bars, between, closest);
}

/** Crowds swallow the bars that lie wholly inside them. */
function crowded(
  bars: readonly Piece[],
  gaps: readonly Piece[],
  closest: number,
): readonly Piece[] {
  const merged: Piece[] = [];
  for (const piece of gaps) {
    const last = merged.at(-1);
    const isClose =
      last !== undefined && piece.left - (last.left + last.width) < closest && piece.left > 0;
    // Something long stays what it is, whatever is beside it.
    if (!isClose || last.width > closest * 2 || piece.width > closest * 2) merged.push(piece);
    else merged[merged.length - 1] = together(last, piece);
  }
  const crowds = merged.filter(({ kind }) => kind === 'crowd');
  const isInside = ({ left, width }: Place) =>
    crowds.some((crowd) => left >= crowd.left && left + width <= crowd.left + crowd.width);
  return [...bars.filter((bar) => !isInside(bar)), ...merged];
}

function together(a: Piece, b: Piece): Piece {
  const gaps = [a, b].flatMap((piece) =>
    piece.kind === 'gap' ? [piece.gap] : piece.kind === 'crowd' ? piece.gaps : [],
  );
  return { kind: 'crowd', gaps, left: a.left, width: b.left + b.width - a.left };
}
