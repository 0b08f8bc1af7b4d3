import { type Output, write } from './output.ts';
import { printable, table, toJson } from './text.ts';

/** So many rows are lined up with each other before they are written. */
const BLOCK = 200;

export interface ListForm<T> {
  readonly head: readonly string[];
  /** Its cells, as they may come from anywhere. */
  row(item: T): readonly string[];
  json(item: T): unknown;
  /** What to say where there is nothing. */
  readonly none: string;
}

/**
 * A list of any length, written while it is read: never more than a block of it is in memory. Ends when there is no more, or nobody
 * reads it. As JSON it is one array, with a line for each.
 */
export async function writeList<T>(
  output: Output,
  items: AsyncIterable<T>,
  form: ListForm<T>,
): Promise<void> {
  const list = output.json ? new JsonList(form) : new TableList(output, form);
  let block: T[] = [];
  for await (const item of items) {
    if (block.push(item) < BLOCK) continue;
    if (!list.add(block)) return;
    block = [];
  }
  if (list.add(block)) list.end();
}

class JsonList<T> {
  readonly #form: ListForm<T>;
  #count = 0;

  constructor(form: ListForm<T>) {
    this.#form = form;
  }

  /** Says whether anybody takes it. */
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

class TableList<T> {
  readonly #output: Output;
  readonly #form: ListForm<T>;
  /** How wide each column is by now: it may grow, and never shrinks. */
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
    // The title's cells are as wide as what is, or was, below them.
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
