/** Moving a window over time by mouse, finger, wheel and keys. Up and down stay what they are: scrolling. */
import { useEffect } from 'preact/hooks';

export interface Moves {
  /** By a share of the window, into the future if positive. */
  pan(share: number): void;
  /** `share`: what is there stays where it is. */
  zoom(factor: number, share: number): void;
  follow(): void;
}

const KEY_STEP = 0.1;
const ZOOM_STEP = 1.5;
/** A wheel turns by about a hundred at a time: so much of that doubles. */
const WHEEL_DOUBLES = 300;
/** Less than that is a click. */
const DRAG_PX = 4;

/** `track`: where time is drawn, inside of `box`, from which events come. */
export function useGestures(
  box: { current: HTMLElement | null },
  track: { current: HTMLElement | null },
  moves: Moves,
): void {
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const end = new AbortController();
    const { signal } = end;
    const shareAt = (x: number) => {
      const { left = 0, width = 1 } = track.current?.getBoundingClientRect() ?? {};
      return Math.min(1, Math.max(0, (x - left) / Math.max(1, width)));
    };
    const widthOf = () => Math.max(1, track.current?.clientWidth ?? 1);
    element.addEventListener('wheel', (event) => onWheel(event, moves, shareAt, widthOf()), {
      passive: false,
      signal,
    });
    element.addEventListener('keydown', (event) => onKey(event, moves), { signal });
    listenToPointers(element, { moves, shareAt, widthOf, signal });
    return () => end.abort();
  }, []);
}

function onWheel(
  event: WheelEvent,
  { pan, zoom }: Moves,
  shareAt: (x: number) => number,
  width: number,
): void {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(2 ** (event.deltaY / WHEEL_DOUBLES), shareAt(event.clientX));
    return;
  }
  const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  if (Math.abs(sideways) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
  event.preventDefault();
  pan(sideways / width);
}

function onKey(event: KeyboardEvent, { pan, zoom, follow }: Moves): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'ArrowLeft') pan(-KEY_STEP);
  else if (event.key === 'ArrowRight') pan(KEY_STEP);
  else if (event.key === '+' || event.key === '=') zoom(1 / ZOOM_STEP, 0.5);
  else if (event.key === '-') zoom(ZOOM_STEP, 0.5);
  else if (event.key === '0') follow();
  else return;
  event.preventDefault();
}

interface Hands {
  readonly moves: Moves;
  readonly signal: AbortSignal;
  shareAt(x: number): number;
  widthOf(): number;
}

/** One pointer pans, two zoom. */
function listenToPointers(element: HTMLElement, { moves, shareAt, widthOf, signal }: Hands): void {
  const pointers = new Map<number, number>();
  let movedPx = 0;
  element.addEventListener(
    'pointerdown',
    (event) => {
      if (event.button !== 0) return;
      if (pointers.size === 0) movedPx = 0;
      pointers.set(event.pointerId, event.clientX);
    },
    { signal },
  );
  const onMove = (event: PointerEvent) => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) return;
    pointers.set(event.pointerId, event.clientX);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    movedPx += Math.abs(event.clientX - before);
    if (movedPx < DRAG_PX) return;
    if (other === undefined) moves.pan((before - event.clientX) / widthOf());
    else pinch(before, event.clientX, other, moves, shareAt);
  };
  const onUp = (event: PointerEvent) => pointers.delete(event.pointerId);
  addEventListener('pointermove', onMove, { signal });
  addEventListener('pointerup', onUp, { signal });
  addEventListener('pointercancel', onUp, { signal });
  // What ends a drag is no click on whatever lies under it.
  const onClick = (event: Event) => {
    if (movedPx >= DRAG_PX) event.stopPropagation();
    if (movedPx >= DRAG_PX) event.preventDefault();
    movedPx = 0;
  };
  element.addEventListener('click', onClick, { capture: true, signal });
}

function pinch(
  before: number,
  after: number,
  other: number,
  { zoom }: Moves,
  shareAt: (x: number) => number,
): void {
  const wide = Math.max(1, Math.abs(before - other));
  const wider = Math.max(1, Math.abs(after - other));
  zoom(wide / wider, shareAt((after + other) / 2));
}
