/**
 * Prints events on a terminal: the time and a sentence. Events of many targets at once become one
 * line: `took 10000 targets: a, b, …`.
 */
import type { Clock, Timer } from '../core/clock.ts';
import { printable } from './facts.ts';

/** How long a line waits for others of the same event. */
const MERGE_MS = 100;
/** The width of the column of names; a longer name pushes its sentence to the right. */
const NAME_WIDTH = 16;
const TIME_WIDTH = 10;
const DEFAULT_COLUMNS = 120;

/** Events that are merged, and the verb for many targets. */
const MERGED_VERBS: Readonly<Record<string, string>> = {
  'lease.acquired': 'took',
  'lease.refused': 'could not take',
  'lease.uncertain': 'starts no new work on',
  'lease.confirmed': 'may work again on',
  'lease.reasserted': 'restored',
  'lease.released': 'released',
  'lease.abandoned': 'did not release',
  'lease.transferred': 'handed over',
  'lease.lost': 'lost',
  'lease.returned': 'released again',
  'session.added': 'added',
  'session.paused': 'paused',
  'session.resumed': 'resumed',
  'session.removed': 'removed',
  'poll.failed': 'failed to poll',
};

const COLOURS: Readonly<Record<string, string>> = { error: '31', warn: '33', debug: '2' };

/** One line of a log. */
export interface PrettyLine {
  readonly time: string | number;
  readonly level: string;
  readonly msg: string;
  readonly event?: string | undefined;
  readonly target?: string | undefined;
  /** The instance, where lines of several are mixed. */
  readonly who?: string | undefined;
}

export interface PrettyOptions {
  readonly clock: Clock;
  readonly color: boolean;
  /** The width of the terminal, if there is one. */
  readonly columns?: number | undefined;
  write(text: string): void;
}

export class PrettyLog {
  readonly #options: PrettyOptions;
  /** Waiting lines, by event and instance. */
  readonly #waiting = new Map<string, PrettyLine[]>();
  #timer: Timer | null = null;

  constructor(options: PrettyOptions) {
    this.#options = options;
  }

  add(line: PrettyLine): void {
    const { event = '', target, who = '' } = line;
    if (target === undefined || MERGED_VERBS[event] === undefined) {
      this.flush();
      this.#print(line);
      return;
    }
    const kind = `${event} ${who}`;
    const alike = this.#waiting.get(kind) ?? [];
    this.#waiting.set(kind, alike);
    alike.push(line);
    this.#timer ??= this.#options.clock.after(MERGE_MS, () => this.flush());
  }

  /** Prints the waiting lines. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (const lines of this.#waiting.values()) {
      const [first] = lines;
      if (first === undefined) continue;
      const columns =
        (this.#options.columns ?? DEFAULT_COLUMNS) - TIME_WIDTH - nameOf(first).length;
      this.#print(
        lines.length === 1 ? first : { ...first, msg: mergedText(first, lines, columns) },
      );
    }
    this.#waiting.clear();
  }

  #print(line: PrettyLine): void {
    const { time, level, msg } = line;
    const at = new Date(time).toTimeString().slice(0, 8);
    const name = nameOf(line);
    const text = printable(msg);
    const colour = COLOURS[level];
    const shown = this.#options.color
      ? `\u001b[2m${at}\u001b[0m  ${name}${colour === undefined ? text : `\u001b[${colour}m${text}\u001b[0m`}`
      : `${at}  ${name}${text}`;
    this.#options.write(`${shown}\n`);
  }
}

function nameOf({ who }: PrettyLine): string {
  return who === undefined ? '' : `${printable(who).padEnd(NAME_WIDTH)}  `;
}

/** A merged line, with as many names as fit, at least one. */
function mergedText(
  { event = '' }: PrettyLine,
  lines: readonly PrettyLine[],
  columns: number,
): string {
  let text = `${MERGED_VERBS[event]} ${lines.length} targets:`;
  for (const [i, { target = '' }] of lines.entries()) {
    const isLast = i === lines.length - 1;
    const room = columns - text.length - (isLast ? 2 : ', …'.length + 1);
    if (i > 0 && printable(target).length > room) return `${text} …`;
    text += ` ${target}${isLast ? '' : ','}`;
  }
  return text;
}
