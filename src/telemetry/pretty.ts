/**
 * What happens, as people read it on a terminal: the time, and what it was in words. What happens to many targets at once
 * is one line: who watches an instance start wants to know that it took ten thousand, not each of them.
 */
import type { Clock, Timer } from '../core/clock.ts';
import { printable } from './facts.ts';

/** So long a line waits for others like it. */
const GATHER_MS = 100;
/** How wide names are; a longer one pushes what is behind it to the right. */
const NAME_WIDTH = 16;
const TIME_WIDTH = 10;
const DEFAULT_COLUMNS = 120;

/** What is said of many targets. */
const OF_MANY: Readonly<Record<string, string>> = {
  'lease.acquired': 'took',
  'lease.refused': 'may not have',
  'lease.uncertain': 'is not certain any more of',
  'lease.confirmed': 'is certain again of',
  'lease.reasserted': 'put back',
  'lease.released': 'let go of',
  'lease.abandoned': 'leaves to run out',
  'lease.transferred': 'handed over',
  'lease.lost': 'lost',
  'lease.returned': 'gave back',
  'session.added': 'added',
  'session.paused': 'paused',
  'session.resumed': 'resumed',
  'session.removed': 'removed',
  'poll.failed': 'failed to poll',
};

const COLOURS: Readonly<Record<string, string>> = { error: '31', warn: '33', debug: '2' };

/** One line of a log, as far as people are shown it. */
export interface PrettyLine {
  readonly time: string | number;
  readonly level: string;
  readonly msg: string;
  readonly event?: string | undefined;
  readonly target?: string | undefined;
  /** Who tells it, where that is not clear. */
  readonly who?: string | undefined;
}

export interface PrettyOptions {
  readonly clock: Clock;
  readonly color: boolean;
  /** How wide the terminal is, where there is one. */
  readonly columns?: number | undefined;
  write(text: string): void;
}

export class PrettyLog {
  readonly #options: PrettyOptions;
  /** Lines that came together, by what they tell of, and who does. */
  readonly #gathered = new Map<string, PrettyLine[]>();
  #timer: Timer | null = null;

  constructor(options: PrettyOptions) {
    this.#options = options;
  }

  add(line: PrettyLine): void {
    const { event = '', target, who = '' } = line;
    if (target === undefined || OF_MANY[event] === undefined) {
      this.flush();
      this.#print(line);
      return;
    }
    const kind = `${event} ${who}`;
    const alike = this.#gathered.get(kind) ?? [];
    this.#gathered.set(kind, alike);
    alike.push(line);
    this.#timer ??= this.#options.clock.after(GATHER_MS, () => this.flush());
  }

  /** Says what it has gathered. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (const lines of this.#gathered.values()) {
      const [first] = lines;
      if (first === undefined) continue;
      const most = (this.#options.columns ?? DEFAULT_COLUMNS) - TIME_WIDTH - nameOf(first).length;
      this.#print(lines.length === 1 ? first : { ...first, msg: ofMany(first, lines, most) });
    }
    this.#gathered.clear();
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

/** What is said of many, with as many names as fit: one at least. */
function ofMany({ event = '' }: PrettyLine, lines: readonly PrettyLine[], columns: number): string {
  let text = `${OF_MANY[event]} ${lines.length} targets:`;
  for (const [i, { target = '' }] of lines.entries()) {
    const isLast = i === lines.length - 1;
    const room = columns - text.length - (isLast ? 2 : ', …'.length + 1);
    if (i > 0 && printable(target).length > room) return `${text} …`;
    text += ` ${target}${isLast ? '' : ','}`;
  }
  return text;
}
