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
  const list = output.json ? new JsonListWriter(form) : new TableListWriter(output, form);
  let block: T[] = [];
  for await (const item of items) {
    if (block.push(item) < BLOCK) continue;
    if (!list.add(block)) return;
    block = [];
  }
  if (list.add(block)) list.end();
}

class JsonListWriter<T> {
  readonly #form: ListForm<T>;
  #count = 0;

  constructor(form: ListForm<T>) {
    this.#form = form;
  }

  /** False: the reader has ended. */
  add(items: readonly T[]): boolean {
    const lines = items.map((item) => {
      const before = this.#count++ === 0 ? '[\n' : ',\n';
      return `${before}  ${toJson(this.#form.json(item))}`;
    });
    return write(1, lines.join(''));
  }

  end(): void {
    write(1, this.#count === 0 ? '[]\n' : '\n]\n');
  }
}

class TableListWriter<T> {
  readonly #output: Output;
  readonly #form: ListForm<T>;
  /** The width of each column so far. It never shrinks. */
  #widths: readonly number[];
  #count = 0;

  constructor(output: Output, form: ListForm<T>) {
    this.#output = output;
    this.#form = form;
    this.#widths = form.head.map((title) => title.length);
  }

  add(items: readonly T[]): boolean {
    if (items.length === 0) return true;
    const rows = items.map((item) => this.#form.row(item).map(printable));
    this.#widths = this.#widths.map((width, i) =>
      Math.max(width, ...rows.map((row) => row[i]?.length ?? 0)),
    );
    // The cells of the head are as wide as all cells below them so far.
    const title = this.#form.head.map((text, i) => text.padEnd(this.#widths[i] ?? 0));
    const [head = '', ...lines] = table([title, ...rows], this.#output.columns).split('\n');
    const isFirst = this.#count === 0;
    this.#count += items.length;
    return write(1, [...(isFirst ? [this.#output.style('bold', head)] : []), ...lines].join('\n'));
  }

  end(): void {
    if (this.#count === 0) write(1, `${this.#form.none}\n`);
  }
}
