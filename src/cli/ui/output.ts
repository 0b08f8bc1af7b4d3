import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import { systemClock } from '../../core/clock.ts';
import { HoldfastError } from '../../core/errors.ts';
import { CliError } from '../exit-codes.ts';
import { acceptorOf, NonblockingWriter } from './nonblocking-writer.ts';
import { counted, jsonFacts, printable, toJson } from './text.ts';

/** How often a write to a full pipe is retried, once a millisecond. Then the rest is dropped. */
const MAX_WRITE_ATTEMPTS = 10_000;
/** How long a reader has to take the end of the output. */
const FLUSHED_WITHIN_MS = 1_000;
const DEFAULT_COLUMNS = 80;

export type Style = 'green' | 'yellow' | 'red' | 'bold' | 'dim';

export interface OutputOptions {
  readonly json: boolean;
  /** False: no colours, even on a terminal. */
  readonly color: boolean;
}

/** The output of a command: its result on stdout, everything else on stderr. */
export class Output {
  readonly json: boolean;
  readonly #color: boolean;

  constructor({ json, color }: OutputOptions) {
    this.json = json;
    this.#color = color && isatty(1) && process.env.TERM !== 'dumb';
  }

  get hasColor(): boolean {
    return this.#color;
  }

  /** The width of the terminal; undefined without one. */
  get columns(): number | undefined {
    return isatty(1) ? process.stdout.columns || DEFAULT_COLUMNS : undefined;
  }

  /** Prints the result: as JSON, or as text, which must be printable already. */
  result(value: unknown, text: () => string): void {
    write(1, this.json ? `${toJson(value, 2)}\n` : text());
  }

  style(style: Style, text: string): string {
    // `#color` has decided. Node would read the environment again, and knows fewer terminals.
    return this.#color && text !== '' ? styleText(style, text, { validateStream: false }) : text;
  }

  /** A table whose first line is bold. */
  titled(table: string): string {
    const [head = '', ...lines] = table.split('\n');
    return [this.style('bold', head), ...lines].join('\n');
  }

  /** Prints an error: one line, or JSON. */
  complain(error: unknown): void {
    const { code, message, facts } = described(error);
    if (this.json) write(2, `${toJson({ error: { code, message, ...facts } })}\n`);
    else write(2, `holdfast: ${printable(message)}\n`);
    if (process.env.HOLDFAST_DEBUG === '1' && error instanceof Error) write(2, `${error.stack}\n`);
  }

  /** Prints why there was nothing to do: one line, or JSON. */
  skipped(reason: CliError): void {
    const { code, message, facts } = described(reason);
    if (this.json) write(2, `${toJson({ skipped: { code, message, ...facts } })}\n`);
    else write(2, `holdfast: ${printable(message)}\n`);
  }

  /** Prints a line that is not an error. With `--json`, nothing. */
  note(message: string): void {
    if (!this.json) write(2, `holdfast: ${printable(message)}\n`);
  }
}

interface Described {
  readonly code: string;
  readonly message: string;
  readonly facts: Record<string, unknown>;
}

function described(error: unknown): Described {
  if (error instanceof CliError) {
    return { code: error.code, message: error.message, facts: jsonFacts(error.facts) };
  }
  if (error instanceof HoldfastError) {
    const { code, name, message, ...facts } = { ...error, message: error.message };
    return { code, message, facts: jsonFacts(facts) };
  }
  const why = error instanceof Error ? error.message : String(error);
  const message = `internal error: ${why}. Run it again with HOLDFAST_DEBUG=1 for the stack, and report it.`;
  return { code: 'INTERNAL', message, facts: {} };
}

/** For each output that must not block this process. */
const writers = new Map<1 | 2, NonblockingWriter>();

interface Unblocked {
  /** Reports dropped lines on stdout. Default: one line of text. */
  onDropped?(lines: number): void;
  /** Another command has the same outputs, and expects blocking writes. */
  isShared?: boolean;
}

/** For commands that run until a signal: from now on a slow reader does not block their writes. */
export function neverBlock({ onDropped, isShared = false }: Unblocked = {}): void {
  for (const fd of [1, 2] as const) {
    const parts = { clock: systemClock, accept: acceptorOf(fd, isShared) };
    const report = fd === 1 && onDropped !== undefined ? onDropped : reportDropped;
    writers.set(fd, new NonblockingWriter({ ...parts, onDropped: (lines) => report(lines, fd) }));
  }
}

export function droppedMessage(lines: number): string {
  const were = lines === 1 ? 'was' : 'were';
  return `${counted(lines, 'line')} ${were} dropped: the reader of this output was too slow`;
}

function reportDropped(lines: number, fd: 1 | 2): void {
  write(fd, `holdfast: ${droppedMessage(lines)}\n`);
}

/** Whether the reader is behind. A frame that the next one replaces need not be drawn then. */
export function isBehind(fd: 1 | 2): boolean {
  return writers.get(fd)?.isBehind ?? false;
}

/** Waits until readers have taken the end of the output. */
export async function flushOutput(): Promise<void> {
  await Promise.all([...writers.values()].map((writer) => writer.flushed(FLUSHED_WITHIN_MS)));
}

/** Writes. False: the reader has ended. */
export function write(fd: 1 | 2, text: string): boolean {
  return writers.get(fd)?.write(text) ?? writeAndWait(fd, text);
}

/**
 * For commands that end after their output: a pager may take its time. Not by process.stdout and
 * process.stderr: they make a pipe non-blocking, also for a command that shares it, and `cat` does
 * not expect that.
 */
function writeAndWait(fd: 1 | 2, text: string): boolean {
  let rest = Buffer.from(text);
  for (let attempt = 0; rest.length > 0 && attempt < MAX_WRITE_ATTEMPTS; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
      attempt = 0;
    } catch (error) {
      // The reader has ended, as with `holdfast ls | head -1`, or the pipe is full.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false;
      Atomics.wait(SLEEPING, 0, 0, 1);
      attempt += 1;
    }
  }
  return rest.length === 0;
}

const SLEEPING = new Int32Array(new SharedArrayBuffer(4));
