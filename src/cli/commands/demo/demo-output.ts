/** The targets of each instance: a block that a terminal redraws; elsewhere a line per change. */
import { systemClock } from '../../../core/clock.ts';
import type { FleetView } from '../../../fleet/watch/fleet.ts';
import { isBehind, type Output, write } from '../../ui/output.ts';
import { cut, printable } from '../../ui/text.ts';
import type { InstanceRun } from './instance-run.ts';

const DEFAULT_COLUMNS = 80;
const HOURS_TO_SECONDS = 8;
/** The longest name: `nobody`. */
const NAME_COLUMNS = 6;
/** The longest state: `starting`. */
const STATE_COLUMNS = 8;

export class DemoOutput {
  readonly #output: Output;
  /** Null without a terminal. */
  readonly #columns: number | null;
  #drawn: readonly string[] = [];
  #split = '';

  constructor(output: Output) {
    this.#output = output;
    this.#columns = output.columns ?? null;
  }

  /** Prints whole lines above the block. They must be printable already. */
  print(text: string): void {
    if (this.#output.json) return;
    const drawn = this.#drawn;
    this.clear();
    write(1, text);
    this.#draw(drawn);
  }

  /** Prints an event with its time. */
  report(text: string): void {
    const time = new Date(systemClock.wallMs()).toTimeString().slice(0, HOURS_TO_SECONDS);
    this.print(`${this.#output.style('dim', time)}  ${printable(text)}\n`);
  }

  show(actors: readonly InstanceRun[], { targets }: FleetView): void {
    const ids = new Set(actors.map(({ instance }) => instance));
    const rows = actors.map(({ name, state, instance }) => {
      const owned = targets.filter(({ owner }) => owner !== null && owner === instance);
      return { name, state, owned: owned.map(({ target }) => target) };
    });
    // The targets of a dead instance, even while its leases have not expired.
    const left = targets.filter(({ owner }) => owner === null || !ids.has(owner));
    const nobody = { name: 'nobody', state: '', owned: left.map(({ target }) => target) };
    const all = left.length > 0 ? [...rows, nobody] : rows;
    if (this.#columns === null) this.#reportSplit(all);
    else this.#draw(all.map((row) => this.#line(row, targets.length)));
  }

  /** Replaces the block by one line. */
  status(text: string): void {
    if (this.#columns !== null) this.#draw([cut(printable(text), this.#columns - 1)]);
  }

  clear(): void {
    // Moves to the first line of the block, and clears the screen below.
    if (this.#drawn.length > 0) write(1, `\u001b[${this.#drawn.length}A\u001b[J`);
    this.#drawn = [];
  }

  #draw(lines: readonly string[]): void {
    if (this.#output.json || isBehind(1) || String(lines) === String(this.#drawn)) return;
    this.clear();
    write(1, lines.map((line) => `${line}\n`).join(''));
    this.#drawn = lines;
  }

  #reportSplit(rows: readonly Row[]): void {
    const split = rows.map(({ name, owned }) => `${name} ${owned.length}`).join(' · ');
    if (split !== this.#split) this.report(split);
    this.#split = split;
  }

  #line({ name, state, owned }: Row, total: number): string {
    const label = `  ${name.padEnd(NAME_COLUMNS)}  ${state.padEnd(STATE_COLUMNS)}  `;
    const bar = (process.env.TERM === 'dumb' ? '#' : '█').repeat(owned.length).padEnd(total);
    const columns = this.#columns ?? DEFAULT_COLUMNS;
    const room = columns - label.length - bar.length - 1;
    const names = cut(`${String(owned.length).padStart(4)}  ${owned.join(' ')}`, room);
    const isWell = state === 'running' || state === 'starting';
    const [labelled, drawn] = isWell
      ? [label, this.#output.style('green', bar)]
      : [this.#output.style('yellow', label), this.#output.style('yellow', bar)];
    return `${labelled}${drawn}${names}`;
  }
}

interface Row {
  readonly name: string;
  readonly state: string;
  readonly owned: readonly string[];
}
