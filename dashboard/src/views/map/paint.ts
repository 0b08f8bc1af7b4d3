/**
 * Targets as small squares on a canvas: ten thousand of them cost as much as a few hundred elements. A square is as full as its lease has time
 * left. Each state has its own shape, for readers who cannot tell the colours apart.
 */
import type { SeenTarget } from '../../data/fleet.ts';
import { markOf } from '../../data/palette.ts';
import { isNotPreferred, levelOf, STATES } from '../../data/states.ts';
import { type Terms, type TimeLeft, termsOf, timeLeft } from '../../data/ttl.ts';
import { MOVE_SHOWN_MS } from './pointed.ts';

/** From one square to the next, and how many are in a row. */
export interface Grid {
  readonly step: number;
  readonly columns: number;
}

export interface Inks {
  readonly ink: string;
  readonly panel: string;
  readonly bad: string;
  readonly warn: string;
  readonly accent: string;
  readonly quiet: string;
  of(owner: string): string;
}

/** Squares from this size on have room for a letter. */
const LETTER_FROM = 13;
/** How much of its colour a square has where its time is over. */
const SPENT_ALPHA = 0.3;
/** And where it may or may not be over: renewals are not told of. */
const MAYBE_ALPHA = 0.65;
/** Two flashes a second: faster ones can trigger seizures. */
const FLASH_EVERY_MS = 500;
const FLASH_MS = 3_000;

/** The colours as the theme has them now: a canvas knows no variables. */
export function inksNow(): Inks {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  const known = new Map<string, string>();
  return {
    ink: get('--ink'),
    panel: get('--panel'),
    bad: get('--bad'),
    warn: get('--warn'),
    accent: get('--accent'),
    quiet: get('--ink-2'),
    of(owner) {
      let colour = known.get(owner);
      if (colour === undefined) {
        colour = get(markOf(owner).colour.slice(4, -1));
        known.set(owner, colour);
      }
      return colour;
    },
  };
}

export function heightOf(count: number, { step, columns }: Grid): number {
  return Math.max(1, Math.ceil(count / columns)) * step;
}

export interface Picture {
  readonly items: readonly SeenTarget[];
  readonly grid: Grid;
  readonly inks: Inks;
  readonly nowMs: number;
  /** What was painted before, square by square: what is the same is left as it is. Null: all is painted. */
  readonly before: readonly SeenTarget[] | null;
  /** Where the keyboard is; -1 for nowhere. */
  readonly cursor: number;
  readonly isStill: boolean;
}

/** Says whether something has just moved, and is to be painted again soon. */
export function paint(context: CanvasRenderingContext2D, picture: Picture): boolean {
  const { items, grid, inks, nowMs, before, cursor, isStill } = picture;
  const size = grid.step - (grid.step >= 6 ? 1 : 0);
  const terms = new Map<string | null, Terms>();
  let isFlashing = false;
  context.font = `600 ${Math.min(11, Math.round(size * 0.7))}px ui-monospace, monospace`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  const all = before === null ? items.length : Math.max(items.length, before.length);
  for (let i = 0; i < all; i++) {
    const target = items[i];
    const sinceMs = nowMs - (target?.movedAtMs ?? Number.NEGATIVE_INFINITY);
    const isMoved = sinceMs < MOVE_SHOWN_MS;
    isFlashing ||= isMoved;
    if (before !== null && before[i] === target && !isMoved) continue;
    const x = (i % grid.columns) * grid.step;
    const y = Math.floor(i / grid.columns) * grid.step;
    const box = { context, inks, x, y, size };
    context.clearRect(x, y, size, size);
    if (target === undefined) continue;
    const term = terms.get(target.owner) ?? termsOf(target.owner);
    terms.set(target.owner, term);
    paintTime(box, target, timeLeft(target, term, nowMs));
    paintMarks(box, target);
    const isDark = !isStill && sinceMs < FLASH_MS && sinceMs % FLASH_EVERY_MS > 250;
    if (isMoved && !isDark) paintMove(box, target.movedFrom);
    if (i === cursor) outline(box, inks.accent, 3);
  }
  return isFlashing;
}

interface Box {
  readonly context: CanvasRenderingContext2D;
  readonly inks: Inks;
  readonly x: number;
  readonly y: number;
  readonly size: number;
}

function paintTime(
  { context, inks, x, y, size }: Box,
  { owner, reason }: SeenTarget,
  left: TimeLeft | null,
): void {
  const { kind } = STATES[reason];
  context.fillStyle = owner === null ? (kind === 'paused' ? inks.quiet : inks.bad) : inks.of(owner);
  const alpha = left?.isAtLeast ? MAYBE_ALPHA : SPENT_ALPHA;
  context.globalAlpha = owner === null ? SPENT_ALPHA / 2 : alpha;
  context.fillRect(x, y, size, size);
  context.globalAlpha = 1;
  if (owner === null) return;
  const full = Math.max(1, Math.round(size * (left?.share ?? 1)));
  context.fillRect(x, y + size - full, size, full);
}

function paintMarks(box: Box, target: SeenTarget): void {
  const { context, inks, x, y, size } = box;
  const { kind, letter } = STATES[target.reason];
  const level = levelOf(target);
  if (level !== undefined) hatch(box, inks[level]);
  if (kind === 'paused') outline(box, inks.quiet, 1);
  if (isNotPreferred(target)) {
    const corner = Math.max(3, size * 0.45);
    context.fillStyle = inks.panel;
    context.beginPath();
    context.moveTo(x + size - corner, y);
    context.lineTo(x + size, y);
    context.lineTo(x + size, y + corner);
    context.fill();
  }
  if (target.pinned !== null) {
    context.fillStyle = inks.panel;
    context.beginPath();
    context.arc(x + size / 2, y + size / 2, Math.max(1.5, size * 0.2), 0, Math.PI * 2);
    context.fill();
  }
  if (letter === '') return;
  if (size >= LETTER_FROM) write(box, letter);
  else if (kind === 'busy') {
    context.fillStyle = inks.panel;
    context.fillRect(x, y + size / 2 - 1, size, 2);
  }
}

/** Diagonal lines and a frame, which stand out in any colour. */
function hatch(box: Box, colour: string): void {
  const { context, x, y, size } = box;
  context.save();
  context.beginPath();
  context.rect(x, y, size, size);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = size >= LETTER_FROM ? 2 : 1.2;
  context.beginPath();
  const gap = size >= LETTER_FROM ? 6 : 4;
  for (let at = -size; at < size; at += gap) {
    context.moveTo(x + at, y + size);
    context.lineTo(x + at + size, y);
  }
  context.stroke();
  context.restore();
  outline(box, colour, size >= 10 ? 2 : 1);
}

function write({ context, inks, x, y, size }: Box, letter: string): void {
  const half = Math.min(11, size * 0.7) * 0.62;
  context.fillStyle = inks.panel;
  context.fillRect(x + size / 2 - half, y + size / 2 - half, half * 2, half * 2);
  context.fillStyle = inks.ink;
  context.fillText(letter, x + size / 2, y + size / 2 + 0.5);
}

/** In a frame, with the colour of its former owner in the middle. */
function paintMove(box: Box, from: string | null): void {
  const { context, inks, x, y, size } = box;
  if (from !== null) {
    const inner = Math.max(2, Math.round(size * 0.45));
    context.fillStyle = inks.of(from);
    context.fillRect(x + (size - inner) / 2, y + (size - inner) / 2, inner, inner);
  }
  outline(box, inks.ink, 2);
}

function outline({ context, x, y, size }: Box, colour: string, width: number): void {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(x + width / 2, y + width / 2, size - width, size - width);
}
