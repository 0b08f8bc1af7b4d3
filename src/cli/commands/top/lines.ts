/** Lines that are cut at the width of the screen. Styles come last, because they have no width. */
import type { Style } from '../../ui/output.ts';
import { cut } from '../../ui/text.ts';

/** A piece of a line, printable already. */
export interface Span {
  readonly text: string;
  readonly style?: Style | undefined;
}

export type Line = readonly Span[];

export type Styler = (style: Style, text: string) => string;

export const BLANK: Line = [];

export function span(text: string, style?: Style): Span {
  return { text, style };
}

export function widthOf(line: Line): number {
  return line.reduce((sum, { text }) => sum + text.length, 0);
}

/** The line in so many columns. */
export function rendered(line: Line, columns: number, styled: Styler): string {
  let left = columns;
  let shown = '';
  for (const [i, { text, style }] of line.entries()) {
    const isMore = line.slice(i + 1).some((later) => later.text.length > 0);
    // If the next piece does not fit at all, the end of this one shows that.
    const fitted = cut(text.length === left && isMore ? `${text} ` : text, left);
    shown += style === undefined ? fitted : styled(style, fitted);
    left -= fitted.length;
    if (left <= 0) break;
  }
  return shown.trimEnd();
}

/** One text on the left, one on the right. If both do not fit, the left one is cut. */
export function opposite(left: Line, right: Line, columns: number): Line {
  const room = columns - widthOf(right) - 2;
  if (room <= 0) return right;
  const gap = Math.max(0, room - widthOf(left)) + 2;
  const kept: Span[] = [];
  let used = 0;
  for (const { text, style } of left) {
    const fitted = cut(text, room - used);
    kept.push(span(fitted, style));
    used += fitted.length;
    if (used >= room) break;
  }
  return [...kept, span(' '.repeat(gap)), ...right];
}

/** A column. On a narrow screen the highest rank is left out first; rank 0 always stays. */
export interface Column<T> {
  readonly head: string;
  readonly rank: number;
  readonly isRight?: boolean;
  cell(of: T): Span;
}

/** A head, and a line for each item, with as many columns as fit. */
export function tableLines<T>(
  all: readonly T[],
  columns: readonly Column<T>[],
  width: number,
): { head: Line; rows: Line[] } {
  const cells = columns.map((column) => all.map((one) => column.cell(one)));
  const widths = columns.map(({ head }, c) =>
    Math.max(head.length, ...(cells[c] ?? []).map(({ text }) => text.length)),
  );
  let shown = columns.map((_, c) => c);
  const total = () => shown.reduce((sum, c) => sum + (widths[c] ?? 0) + 2, -2);
  while (total() > width) {
    const worst = shown.reduce((a, b) => (rankOf(columns, b) > rankOf(columns, a) ? b : a));
    if (rankOf(columns, worst) === 0) break;
    shown = shown.filter((c) => c !== worst);
  }
  const padded = (c: number, { text, style }: Span): Span[] => {
    const gap = ' '.repeat((widths[c] ?? 0) - text.length);
    const pieces = columns[c]?.isRight
      ? [span(gap), span(text, style)]
      : [span(text, style), span(gap)];
    return c === shown.at(-1) ? pieces : [...pieces, span('  ')];
  };
  return {
    head: shown.flatMap((c) => padded(c, span(columns[c]?.head ?? '', 'dim'))),
    rows: all.map((_, r) => shown.flatMap((c) => padded(c, cells[c]?.[r] ?? span('')))),
  };
}

function rankOf<T>(columns: readonly Column<T>[], c: number): number {
  return columns[c]?.rank ?? 0;
}

/** Shares lines among sections. Sections that need few get them all, the others share the rest. */
export function sharesOf(room: number, wants: readonly number[]): number[] {
  const shares = wants.map(() => 0);
  const order = wants.map((_, i) => i).sort((a, b) => (wants[a] ?? 0) - (wants[b] ?? 0));
  let left = Math.max(0, room);
  for (const [done, i] of order.entries()) {
    const share = Math.min(wants[i] ?? 0, Math.floor(left / (order.length - done)));
    shares[i] = share;
    left -= share;
  }
  return shares;
}
