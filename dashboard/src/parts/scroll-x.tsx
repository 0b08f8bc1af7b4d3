/** A box for wide tables. It scrolls sideways, and says so while something is cut off. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icon.tsx';

/** Less than this is rounding. */
const LEAST_PX = 2;

export function ScrollX({ label, children }: { label: string; children: ComponentChildren }) {
  const box = useRef<HTMLElement>(null);
  const [cut, setCut] = useState({ isWide: false, left: false, right: false });
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const look = () => {
      const { scrollLeft, scrollWidth, clientWidth } = element;
      const rest = scrollWidth - clientWidth;
      const next = {
        isWide: rest > LEAST_PX,
        left: scrollLeft > LEAST_PX,
        right: rest - scrollLeft > LEAST_PX,
      };
      setCut((known) => (JSON.stringify(known) === JSON.stringify(next) ? known : next));
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);
  const edges = `${cut.left ? ' cut-left' : ''}${cut.right ? ' cut-right' : ''}`;
  return (
    <div class={`scroll-hint${edges}`}>
      <section
        ref={box}
        class="scroll-x"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
      >
        {children}
      </section>
      {cut.isWide && (
        <p class="quiet small scroll-words">
          The table is wider than the screen: scroll sideways <Icon name="right" />
        </p>
      )}
    </div>
  );
}
