/** Small drawings. Fonts lack many signs, and draw others as emoji; these look the same everywhere. */

const PATHS = {
  sun: 'M8 4.8a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4ZM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.1 1.1M11.9 11.9 13 13M13 3l-1.1 1.1M4.1 11.9 3 13',
  moon: 'M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3Z',
  warning: 'M8 2 15 14H1ZM8 6.5v3.4M8 11.9v.1',
  check: 'M2.5 8.5 6.5 12.5 13.5 4',
  cross: 'M3.5 3.5 12.5 12.5M12.5 3.5 3.5 12.5',
  pause: 'M5 3v10M11 3v10',
  play: 'M4 2.5 13 8 4 13.5Z',
  up: 'M8 14V2.5M3.5 7 8 2.5 12.5 7',
  right: 'M2 8H13.5M9 3.5 13.5 8 9 12.5',
  back: 'M10.5 2.5 5 8 10.5 13.5',
  forward: 'M5.5 2.5 11 8 5.5 13.5',
  plus: 'M8 2.5v11M2.5 8h11',
  minus: 'M2.5 8h11',
  ascending: 'M3.5 10.5 8 5.5 12.5 10.5',
  descending: 'M3.5 5.5 8 10.5 12.5 5.5',
  ring: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11Z',
  waiting: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM8 5v3.4l2.2 1.6',
  dot: 'M8 3.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9Z',
  half: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM8 2.5v11A5.5 5.5 0 0 1 8 2.5Z',
  square: 'M3.5 3.5h9v9h-9Z',
} as const;

export type IconName = keyof typeof PATHS;

/** These are areas; the others are lines. */
const FILLED = new Set<IconName>(['dot', 'square', 'half', 'play']);

/** Hidden from screen readers: the words beside it, or the label of its button, say the same. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={FILLED.has(name) ? 'icon filled' : 'icon'} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
