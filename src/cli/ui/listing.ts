import { type Output, write } from './output.ts';
import { printable, table, toJson } from './text.ts';

/** This many rows are aligned with each other before they are written. */
const BLOCK = 200;

export interface ListForm<T> {
  readonly head: readonly string[];
  /** Its cells, which need not be printable. */
  row(item: T): readonly string[];
  json(item: T): unknown;
  /** The text for an empty list. */
  readonly none: string;
}

/**
 * Writes a list of any length while it is read, so that at most one block is in memory. Ends with
 * the list, or with the reader of the output. As JSON it is one array with a line for each item.
 */
export async function writeList<T>(
  output: Output,
  items: AsyncIterable<T>,
  form: ListForm<T>,
): Promise<void> {
  const list = output.json ? jsonList(form) : tableList(output, form);
  let block: T[] = [];
  for await (const item of items) {
    if (block.push(item) < BLOCK) continue;
    if (!list.add(block)) return;
    block = [];
  }
  if (list.add(block)) list.end();
}

interface List<T> {
  /** False: the reader has ended. */
  add(items: readonly T[]): boolean;
  end(): void;
}

function jsonList<T>(form: ListForm<T>): List<T> {
  let count = 0;
  return {
    add(items) {
      const lines = items.map((item) => {
        return `${count++ === 0 ? '[\n' : ',\n'}  ${toJson(form.json(item))}`;
      });
      return write(1, lines.join(''));
    },
    end: () => void write(1, count === 0 ? '[]\n' : '\n]\n'),
  };
}

function tableList<T>(output: Output, form: ListForm<T>): List<T> {
  /** The width of each column so far. It never shrinks. */
  let widths = form.head.map((title) => title.length);
  let count = 0;
  return {
    add(items) {
      if (items.length === 0) return true;
      const rows = items.map((item) => form.row(item).map(printable));
      widths = widths.map((width, i) => Math.max(width, ...rows.map((row) => row[i]?.length ?? 0)));
      // The cells of the head are as wide as all cells below them so far.
      const title = form.head.map((text, i) => text.padEnd(widths[i] ?? 0));
      const text = table([title, ...rows], output.columns);
      const isFirst = count === 0;
      count += items.length;
      return write(1, isFirst ? output.titled(text) : text.slice(text.indexOf('\n') + 1));
    },
    end() {
      if (count === 0) write(1, `${form.none}\n`);
    },
  };
}
