/** A long list with a head. On a narrow screen its rows have several lines. */
import type { ComponentChildren } from 'preact';
import { isNarrow } from '../data/narrow.ts';
import { Rows } from '../parts/rows.tsx';

const MOST_HEIGHT = 600;

export function LongList<T>({
  of,
  items,
  label,
  head,
  heights,
  keyOf,
  row,
}: {
  /** Which grid its rows are on: `.workflow-row`. */
  of: string;
  items: readonly T[];
  label: string;
  head: readonly string[];
  heights: readonly [wide: number, narrow: number];
  keyOf(item: T): string;
  row(item: T): ComponentChildren;
}) {
  return (
    <>
      {/* Rows say what they are themselves, to those who do not see columns. */}
      <div class={`list-head ${of}-row`} aria-hidden="true">
        {head.map((name) => (
          <span key={name}>{name}</span>
        ))}
      </div>
      <Rows
        items={items}
        rowHeight={heights[isNarrow.value ? 1 : 0]}
        height={MOST_HEIGHT}
        label={label}
        keyOf={keyOf}
        row={row}
      />
    </>
  );
}

/** `12 of 40 sessions`, or `40 sessions` where that is all. */
export function shareText(found: number, all: number, noun: string): string {
  const whole = `${all.toLocaleString('en')} ${noun}${all === 1 ? '' : 's'}`;
  return found === all ? whole : `${found.toLocaleString('en')} of ${whole}`;
}
