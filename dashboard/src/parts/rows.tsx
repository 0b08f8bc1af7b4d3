/**
 * A long list of which only what is seen is drawn: ten thousand rows cost as much as fifty. All rows are of one height. A
 * screen reader announces how many rows there are, and which these are.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Drawn beyond either end of what is seen, so that scrolling does not show nothing. */
const SPARE = 8;

export interface RowsProps<T> {
  readonly items: readonly T[];
  readonly rowHeight: number;
  /** Of the list as it is seen, in pixels. */
  readonly height: number;
  readonly label: string;
  keyOf(item: T): string;
  row(item: T): ComponentChildren;
}

export function Rows<T>({ items, rowHeight, height, label, keyOf, row }: RowsProps<T>) {
  const box = useRef<HTMLElement>(null);
  const [top, setTop] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const onScroll = () => setTop(element.scrollTop);
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => element.removeEventListener('scroll', onScroll);
  }, []);
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + SPARE);
  return (
    <section
      ref={box}
      class="rows-box"
      style={{ maxHeight: `${height}px` }}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
    >
      <ul
        class="rows-all"
        aria-label={`${label}, ${items.length}`}
        style={{ height: `${items.length * rowHeight}px` }}
      >
        {items.slice(first, last).map((item, i) => (
          <li
            key={keyOf(item)}
            class="rows-one"
            aria-setsize={items.length}
            aria-posinset={first + i + 1}
            style={{ top: `${(first + i) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {row(item)}
          </li>
        ))}
      </ul>
    </section>
  );
}
