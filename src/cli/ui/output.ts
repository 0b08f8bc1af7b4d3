import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import { systemClock } from '../../core/clock.ts';
import { HoldfastError } from '../../core/errors.ts';
import { CliError } from '../exit-codes.ts';
import { acceptorOf, NonblockingWriter } from './nonblocking-writer.ts';
import { counted, jsonFacts, printable, toJson } from './text.ts';

/** How often a full pipe is tried again, once a millisecond; then the rest of what was to be said is dropped. */
const MAX_WRITE_ATTEMPTS = 10_000;
/** How long a reader has for the end of what was written. */
const FLUSHED_WITHIN_MS = 1_000;
const DEFAULT_COLUMNS = 80;

export type Style = 'green' | 'yellow' | 'red' | 'bold' | 'dim';

export interface OutputOptions {
  readonly json: boolean;
  /** False where colours are not wanted, even on a terminal. */
  readonly color: boolean;
}

/** Where a command says what it has to say: the result on stdout, everything else on stderr. */
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

  /** How wide the terminal is; undefined where there is none. */
  get columns(): number | undefined {
    return isatty(1) ? process.stdout.columns || DEFAULT_COLUMNS : undefined;
  }

  /** The result, as JSON or as text that is safe already. */
  result(value: unknown, text: () => string): void {
    write(1, this.json ? `${toJson(value, 2)}\n` : text());
  }

  style(style: Style, text: string): string {
    // Whether there are colours is decided above; Node would ask the environment again, and knows fewer terminals.
    return this.#color && text !== '' ? styleText(style, text, { validateStream: false }) : text;
  }

  /** What went wrong: one line, or JSON. */
  complain(error: unknown): void {
    const { code, message, facts } = described(error);
    if (this.json) write(2, `${toJson({ error: { code, message, ...facts } })}\n`);
    else write(2, `holdfast: ${printable(message)}\n`);
    if (process.env.HOLDFAST_DEBUG === '1' && error instanceof Error) write(2, `${error.stack}\n`);
  }

  /** Something worth knowing that is no failure. */
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
  const message = `internal error: ${why}. Run it again with HOLDFAST_DEBUG=1 to see where, and report it.`;
  return { code: 'INTERNAL', message, facts: {} };
}

/** Of each output that must not make this process wait. */
const writers = new Map<1 | 2, NonblockingWriter>();

interface Unblocked {
  /** Says on stdout how many lines its reader did not get; default: in a line. */
  onDropped?(lines: number): void;
  /** A command has the same outputs, and expects to wait for its reader. */
  isShared?: boolean;
}

/** For commands that go on until they are told to end: from now on nothing that they write makes them wait for the reader. */
export function neverBlock({ onDropped, isShared = false }: Unblocked = {}): void {
  for (const fd of [1, 2] as const) {
    const parts = { clock: systemClock, accept: acceptorOf(fd, isShared) };
    const told = fd === 1 && onDropped !== undefined ? onDropped : tellDropped;
    writers.set(fd, new NonblockingWriter({ ...parts, onDropped: (lines) => told(lines, fd) }));
  }
}

export function droppedMessage(lines: number): string {
  const were = lines === 1 ? 'was' : 'were';
  return `${counted(lines, 'line')} ${were} dropped: nobody was reading this output`;
}

function tellDropped(lines: number, fd: 1 | 2): void {
  write(fd, `holdfast: ${droppedMessage(lines)}\n`);
}

/** Whether the reader has not taken yet what was written: a picture that the next one replaces need not be drawn. */
export function isBehind(fd: 1 | 2): boolean {
  return writers.get(fd)?.isBehind ?? false;
}

/** The end of what was written, for a reader that still reads. */
export async function flushOutput(): Promise<void> {
  await Promise.all([...writers.values()].map((writer) => writer.flushed(FLUSHED_WITHIN_MS)));
}

/** Writes. Says whether anybody takes it. */
export function write(fd: 1 | 2, text: string): boolean {
  return writers.get(fd)?.write(text) ?? writeAndWait(fd, text);
}

/**
 * For commands that end when they have said what they have to say: whoever pages through that may take their time. Not by process.stdout and
 * process.stderr: these make a pipe non-blocking, for the command that shares it as well, and `cat` does not expect that.
 */
function writeAndWait(fd: 1 | 2, text: string): boolean {
  let rest = Buffer.from(text);
  for (let attempt = 0; rest.length > 0 && attempt < MAX_WRITE_ATTEMPTS; ) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
      attempt = 0;
    } catch (error) {
      // Nobody reads it any more, as with `holdfast ls | head -1`; or not yet.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false;
      Atomics.wait(SLEEPING, 0, 0, 1);
      attempt += 1;
    }
  }
  return rest.length === 0;
}

const SLEEPING = new Int32Array(new SharedArrayBuffer(4));
