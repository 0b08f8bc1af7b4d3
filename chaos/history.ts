/**
 * What happened, as the processes of a run wrote it down: one JSON line each, one file per process, written before the
 * process continues, so that `kill -9` loses nothing. All times are in ms on the one monotonic clock of the host
 * (`process.hrtime`), so lines of different processes can be put into one order.
 */
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { hostMs } from '../test/support/host-clock.ts';

export interface Entry {
  readonly atMs: number;
  /** The id of an instance, `sink`, `nemesis` or `harness`. */
  readonly who: string;
  readonly what: string;
  readonly target?: string;
  /** Null where the algorithm has none. */
  readonly fence?: number | null;
  readonly [fact: string]: unknown;
}

const SUFFIX = '.jsonl';

/** What the harness itself writes. */
export class HistoryFile {
  readonly #descriptor: number;

  constructor(folder: string, name: string) {
    this.#descriptor = openSync(join(folder, `${name}${SUFFIX}`), 'a');
  }

  write(who: string, what: string, facts: Readonly<Record<string, unknown>> = {}): Entry {
    const entry = { atMs: hostMs(), who, what, ...facts };
    writeSync(this.#descriptor, `${JSON.stringify(entry)}\n`);
    return entry;
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** All that has been written so far, in order of time. */
export function readHistory(folder: string): Entry[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(SUFFIX))
    .flatMap((name) => entriesOf(readFileSync(join(folder, name), 'utf8')))
    .sort((a, b) => a.atMs - b.atMs);
}

export function saveHistory(path: string, history: readonly Entry[]): void {
  writeFileSync(path, history.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
}

/** What stands behind the last line end is being written, or never will be. */
function entriesOf(text: string): Entry[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry);
}
