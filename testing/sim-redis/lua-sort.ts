/**
 * Sorts in place, step by step as Lua does: what it makes of equals is in no order that a better
 * way of sorting would give, and scripts can show it. `isLess` may be any function; one that is no
 * order is refused where Lua refuses it.
 */
export function luaSort<T>(
  items: T[],
  isLess: (a: T, b: T) => boolean,
  refuse: () => never,
  from = 0,
  to = items.length - 1,
): void {
  let [low, high] = [from, to];
  while (low < high) {
    if (isLess(at(high), at(low))) swap(low, high);
    if (high - low === 1) return;
    const middle = middleOf(low, high);
    if (isLess(at(middle), at(low))) swap(middle, low);
    else if (isLess(at(high), at(middle))) swap(middle, high);
    if (high - low === 2) return;
    const place = part(low, high, middle);
    // The smaller side is done first, the larger one by going on.
    if (place - low < high - place) {
      luaSort(items, isLess, refuse, low, place - 1);
      low = place + 1;
    } else {
      luaSort(items, isLess, refuse, place + 1, high);
      high = place - 1;
    }
  }

  function at(i: number): T {
    return items[i] as T;
  }

  function swap(i: number, j: number): void {
    [items[i], items[j]] = [at(j), at(i)];
  }

  /**
   * Puts what is less than the middle one before it and what is more behind it; gives its place.
   */
  function part(first: number, last: number, middle: number): number {
    const pivot = at(middle);
    swap(middle, last - 1);
    let [i, j] = [first, last - 1];
    for (;;) {
      while (isLess(at(++i), pivot)) if (i > last) refuse();
      while (isLess(pivot, at(--j))) if (j < first) refuse();
      if (j < i) break;
      swap(i, j);
    }
    swap(last - 1, i);
    return i;
  }
}

/** Lua counts from 1, and rounds the middle down. */
function middleOf(low: number, high: number): number {
  return Math.floor((low + high + 2) / 2) - 1;
}
