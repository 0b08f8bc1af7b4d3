/** The series of a metric: one value for each combination of labels. */
import type { Clock } from '../../core/clock.ts';
import type { GaugeSource, MetricEntry, Observe } from './metric-catalogue.ts';

/** Replaces unknown label values, so that clients cannot create series. */
const OTHER = 'other';

export type Labels = { [label: string]: string };

/** One value per combination of labels. Known combinations exist from the start. */
export class SeriesSet<T> implements Iterable<T> {
  readonly #entry: MetricEntry;
  readonly #make: (labels: Labels) => T;
  readonly #all = new Map<string, T>();

  constructor(entry: MetricEntry, make: (labels: Labels) => T) {
    this.#entry = entry;
    this.#make = make;
    const lists = Object.values(entry.labels).map((values) => values ?? []);
    for (const values of combinations(lists)) this.of(values);
  }

  of(values: readonly string[]): T {
    const found = this.#all.get(keyOf(values));
    if (found !== undefined) return found;
    const labels = bounded(this.#entry, values);
    const key = keyOf(Object.values(labels));
    const kept = this.#all.get(key) ?? this.#make(labels);
    this.#all.set(key, kept);
    return kept;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#all.values();
  }
}

/** The values of a gauge: set, added up, counting down, or read when they are collected. */
export class GaugeSet {
  readonly #entry: MetricEntry;
  readonly #clock: Clock;
  readonly #source: GaugeSource;
  /** `value`: of a gauge that counts down, when it reaches 0. */
  readonly #all: SeriesSet<{ readonly labels: Labels; value: number }>;

  constructor(entry: MetricEntry, clock: Clock, source: GaugeSource) {
    this.#entry = entry;
    this.#clock = clock;
    this.#source = source;
    this.#all = new SeriesSet(entry, (labels) => ({ labels, value: 0 }));
  }

  readonly observe: Observe = (value, ...labels) => {
    const series = this.#all.of(labels);
    if (this.#entry.countsDown) series.value = this.#clock.monotonicMs() + value * 1_000;
    // Never below 0: a part may resume that stalled before counting began.
    else if (this.#entry.addsUp) series.value = Math.max(0, series.value + value);
    else series.value = value;
  };

  /** Calls `set` for each series. A series that is read, and has no value now, is left out. */
  collect(set: (value: number, labels: Labels) => void): void {
    const { read, countsDown } = this.#entry;
    if (read !== undefined) {
      read(this.#source, (value, ...labels) => set(value, bounded(this.#entry, labels)));
      return;
    }
    const nowMs = this.#clock.monotonicMs();
    for (const { labels, value } of this.#all)
      set(countsDown ? Math.max(0, value - nowMs) / 1_000 : value, labels);
  }
}

function keyOf(values: readonly string[]): string {
  return values.length === 1 ? (values[0] ?? '') : values.join('\n');
}

/** The labels, with `OTHER` for unknown values. */
function bounded({ labels }: MetricEntry, values: readonly string[]): Labels {
  const named = Object.entries(labels).map(([name, known], i) => {
    const value = values[i] ?? OTHER;
    return [name, known === null || known.includes(value) ? value : OTHER];
  });
  return Object.fromEntries(named) as Labels;
}

function combinations(lists: readonly (readonly string[])[]): string[][] {
  const [first, ...rest] = lists;
  if (first === undefined) return [[]];
  return first.flatMap((value) => combinations(rest).map((others) => [value, ...others]));
}
