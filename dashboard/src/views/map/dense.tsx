/** A lane of squares: painted when it has changed and is seen, moved over with arrow keys or a pointer, opened with Enter or a click. */
import { effect, type Signal, signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { SeenTarget } from '../../data/fleet.ts';
import { now } from '../../data/now.ts';
import { theme } from '../../data/theme.ts';
import { type Grid, heightOf, type Inks, inksNow, paint } from './paint.ts';
import { openTarget, pointed, spoken } from './pointed.ts';

/** Time runs down in squares once in so many ticks of the clock, each lane at another: a few hundred at a time. */
const TICKS_PER_PAINT = 4;
/** Changes that come within this time are painted together: many a second may. */
const GATHER_MS = 200;

const stillness = matchMedia('(prefers-reduced-motion: reduce)');

let inks: Inks | null = null;
effect(() => {
  theme.value;
  inks = null;
});

/** In which lane the keyboard is: only that one is a stop for the tab key. */
const stopLane: Signal<string | null> = signal(null);

export interface DenseProps {
  /** Of the lane, for the keyboard. */
  readonly name: string;
  /** Changed in place … */
  readonly items: readonly SeenTarget[];
  /** … so this says when they have. */
  readonly version: number;
  readonly step: number;
  readonly width: number;
  readonly label: string;
  readonly isFirst?: boolean;
}

export function Dense({ name, items, step, width, label, isFirst = false }: DenseProps) {
  const columns = Math.max(1, Math.floor(width / step));
  const grid: Grid = { step, columns };
  const height = heightOf(items.length, grid);
  const board = useRef<Board>(new Board());
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => (canvas.current === null ? undefined : board.current.watch(canvas.current)), []);
  useLayoutEffect(() => board.current.show({ items, grid, width: columns * step, height }));
  const isStop = stopLane.value === null ? isFirst : stopLane.value === name;
  return (
    // biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: its keys are its own, and its label says which
    <canvas
      ref={canvas}
      class="dense"
      role="application"
      aria-roledescription="lane of targets"
      aria-label={label}
      data-lane={name}
      tabIndex={isStop ? 0 : -1}
      style={{ width: `${columns * step}px`, height: `${height}px` }}
      onFocus={() => {
        stopLane.value = name;
        board.current.enter();
      }}
      onBlur={() => board.current.leave()}
      onKeyDown={(event) => board.current.onKey(event)}
      onPointerMove={(event) => {
        pointed.value = board.current.at(event)?.id ?? pointed.value;
      }}
      onClick={(event) => {
        const target = board.current.at(event);
        if (target !== undefined) openTarget(target.id);
      }}
    />
  );
}

interface Shown {
  readonly items: readonly SeenTarget[];
  readonly grid: Grid;
  readonly width: number;
  readonly height: number;
}

let boards = 0;

class Board {
  #shown: Shown | null = null;
  #canvas: HTMLCanvasElement | null = null;
  #isSeen = false;
  #isDue = false;
  #isFlashing = false;
  /** As it stands on the canvas; null: nothing does that could be left there. */
  #painted: readonly SeenTarget[] | null = null;
  #paintedAtMs = 0;
  #cursor = 0;
  /** What the cursor is on: others may come and go before it. */
  #cursorId: string | null = null;
  #hasFocus = false;
  #ticks = boards++;

  watch(canvas: HTMLCanvasElement): () => void {
    this.#canvas = canvas;
    const observer = new IntersectionObserver(([entry]) => {
      this.#isSeen = entry?.isIntersecting ?? false;
      this.#askForAll();
    });
    observer.observe(canvas);
    const endTicks = effect(() => {
      now.value;
      this.#ticks++;
      if (this.#ticks % TICKS_PER_PAINT === 0) this.#askForAll();
      else if (this.#isFlashing) this.#ask();
    });
    const endTheme = effect(() => {
      theme.value;
      this.#askForAll();
    });
    return () => {
      observer.disconnect();
      endTicks();
      endTheme();
    };
  }

  show(shown: Shown): void {
    this.#shown = shown;
    this.#ask();
  }

  enter(): void {
    this.#hasFocus = true;
    this.#go(this.#find(this.#shown?.items ?? []));
  }

  leave(): void {
    this.#hasFocus = false;
    this.#askForAll();
  }

  at({ offsetX, offsetY }: MouseEvent): SeenTarget | undefined {
    if (this.#shown === null) return undefined;
    const { items, grid } = this.#shown;
    return items[Math.floor(offsetY / grid.step) * grid.columns + Math.floor(offsetX / grid.step)];
  }

  onKey(event: KeyboardEvent): void {
    if (this.#shown === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const { items, grid } = this.#shown;
    const at = this.#find(items);
    const target = items[at];
    const steps: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at - grid.columns,
      ArrowDown: at + grid.columns,
      Home: 0,
      End: items.length - 1,
    };
    const next = steps[event.key];
    if (event.key === 'Enter' && target !== undefined) openTarget(target.id);
    else if (next === undefined) return;
    else if (next < 0 || next >= items.length) this.#goBeyond(next < 0 ? -1 : 1);
    else this.#go(next);
    event.preventDefault();
  }

  #go(next: number): void {
    const items = this.#shown?.items ?? [];
    this.#cursor = Math.max(0, Math.min(next, items.length - 1));
    const id = items[this.#cursor]?.id ?? null;
    this.#cursorId = id;
    pointed.value = id;
    spoken.value = id;
    this.#paintedAtMs = 0;
    this.#askForAll();
  }

  #find(items: readonly SeenTarget[]): number {
    const at = items.findIndex(({ id }) => id === this.#cursorId);
    return at === -1 ? Math.min(this.#cursor, items.length - 1) : at;
  }

  /** Behind the last square of a lane lies the next lane. */
  #goBeyond(by: 1 | -1): void {
    const lanes = [...document.querySelectorAll<HTMLCanvasElement>('canvas[data-lane]')];
    const at = this.#canvas === null ? -1 : lanes.indexOf(this.#canvas);
    lanes[at + by]?.focus();
  }

  #askForAll(): void {
    this.#painted = null;
    this.#ask();
  }

  #ask(): void {
    if (this.#isDue || !this.#isSeen) return;
    this.#isDue = true;
    const waitMs = this.#paintedAtMs + GATHER_MS - performance.now();
    const paintSoon = () => requestAnimationFrame(() => this.#paint());
    if (waitMs > 0) setTimeout(paintSoon, waitMs);
    else paintSoon();
  }

  #paint(): void {
    this.#isDue = false;
    const context = this.#canvas?.getContext('2d');
    if (!context || this.#canvas === null || this.#shown === null) return;
    const { items, grid, width, height } = this.#shown;
    const scale = devicePixelRatio;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.#canvas.width !== wide || this.#canvas.height !== high) {
      this.#canvas.width = wide;
      this.#canvas.height = high;
      this.#painted = null;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    if (this.#painted === null) context.clearRect(0, 0, width, height);
    inks ??= inksNow();
    const nowMs = performance.now();
    this.#isFlashing = paint(context, {
      items,
      grid,
      inks,
      nowMs,
      before: this.#painted,
      isStill: stillness.matches,
      cursor: this.#hasFocus ? this.#find(items) : -1,
    });
    // A copy: lanes are changed in place.
    this.#painted = [...items];
    this.#paintedAtMs = nowMs;
  }
}
