/**
 * A log as people read it on a terminal: the time, and what happened in words. What happens to many targets at once is one
 * line: somebody who watches an instance start wants to know that it took ten thousand, not each of them.
 */
import type { Clock, Timer } from '../base/clock.ts';
import { printable } from './facts.ts';

/** So long a line waits for others like it. */
const GATHER_MS = 100;
/** How many names such a line has. */
const MOST_NAMED = 6;

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

interface Line {
  readonly time: string;
  readonly level: string;
  readonly msg: string;
  readonly event?: string;
  readonly target?: string;
}

export interface PrettyOptions {
  readonly clock: Clock;
  readonly color: boolean;
  write(text: string): void;
}

export class PrettyLog {
  readonly #options: PrettyOptions;
  /** Lines of one kind that came together, by event. */
  readonly #gathered = new Map<string, Line[]>();
  #timer: Timer | null = null;

  constructor(options: PrettyOptions) {
    this.#options = options;
  }

  /** Takes one line of JSON, as the log writes it. */
  write(json: string): void {
    const line = JSON.parse(json) as Line;
    const { event = '', target } = line;
    if (target === undefined || OF_MANY[event] === undefined) {
      this.flush();
      this.#print(line);
      return;
    }
    const alike = this.#gathered.get(event) ?? [];
    this.#gathered.set(event, alike);
    alike.push(line);
    this.#timer ??= this.#options.clock.after(GATHER_MS, () => this.flush());
  }

  /** Says what it has gathered. */
  flush(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (const [event, lines] of this.#gathered) {
      const [first] = lines;
      if (first === undefined) continue;
      this.#print(lines.length === 1 ? first : { ...first, msg: ofMany(event, lines) });
    }
    this.#gathered.clear();
  }

  #print({ time, level, msg }: Line): void {
    const at = new Date(time).toTimeString().slice(0, 8);
    const text = printable(msg);
    const colour = COLOURS[level];
    const shown = this.#options.color
      ? `\u001b[2m${at}\u001b[0m  ${colour === undefined ? text : `\u001b[${colour}m${text}\u001b[0m`}`
      : `${at}  ${text}`;
    this.#options.write(`${shown}\n`);
  }
}

function ofMany(event: string, lines: readonly Line[]): string {
  const named = lines.slice(0, MOST_NAMED).map(({ target }) => target);
  const rest = lines.length > named.length ? ', …' : '';
  return `${OF_MANY[event]} ${lines.length} targets: ${named.join(', ')}${rest}`;
}
