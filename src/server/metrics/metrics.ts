/**
 * What happens here, counted, in the form Prometheus reads. A subscriber like any other: `metric-catalogue.ts` says what there is and which
 * event feeds it.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Clock, systemClock } from '../../core/clock.ts';
import { checkKnown } from '../../core/options.ts';
import { packageVersion } from '../../core/version.ts';
import type { Holdfast } from '../../holdfast.ts';
import type { Answered, RequestObserver } from '../parts.ts';
import type { EventHub } from '../streams/event-hub.ts';
import { type Asked, METRICS, type MetricEntry, type Note, PREFIX } from './metric-catalogue.ts';

export interface MetricsParts {
  readonly holdfast: Pick<Holdfast, 'on' | 'census' | 'running'>;
  readonly clock: Clock;
  /** Absent where nothing is served. */
  readonly server?: {
    readonly hub: Pick<EventHub, 'size'>;
    readonly observers: Set<RequestObserver>;
  };
}

export interface MetricsOptions {
  clock?: Clock;
}

/** What a label says that has none of its known values: whoever makes up values makes no series of them. */
const OTHER = 'other';

/** For a program that has its own server: counts what happens to `holdfast` from now on. */
export function createMetrics(holdfast: Holdfast, options: MetricsOptions = {}): Metrics {
  checkKnown(options, new Set(['clock']));
  return new Metrics({ holdfast, clock: options.clock ?? systemClock });
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #notes = new Map<string, Note>();
  readonly #unsubscribes: (() => void)[] = [];
  readonly #clock: Clock;
  readonly #asked: Asked;
  #hasProcess = false;

  constructor({ holdfast, clock, server }: MetricsParts) {
    this.#clock = clock;
    this.#asked = {
      census: () => holdfast.census(),
      get running() {
        return holdfast.running;
      },
      get watching() {
        return server?.hub.size ?? 0;
      },
    };
    for (const entry of METRICS) {
      if (entry.isServers && server === undefined) continue;
      const note = this.#make(entry);
      this.#notes.set(entry.name, note);
      for (const feed of entry.feeds) this.#unsubscribes.push(feed.subscribe(holdfast, note));
    }
    this.#note('build_info')(1, packageVersion());
    if (server !== undefined) server.observers.add((answered) => this.#count(answered));
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything, as it is now. */
  text(): Promise<string> {
    // Watching the process costs observers and a timer for as long as it lives: only where somebody looks.
    if (!this.#hasProcess) collectDefaultMetrics({ register: this.#registry, prefix: PREFIX });
    this.#hasProcess = true;
    return this.#registry.metrics();
  }

  /** Counts nothing more. */
  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  #note(name: string): Note {
    return this.#notes.get(name) ?? (() => {});
  }

  #make(entry: MetricEntry): Note {
    if (entry.type === 'histogram') return this.#histogram(entry);
    return entry.type === 'counter' ? this.#counter(entry) : this.#gauge(entry);
  }

  #counter(entry: MetricEntry): Note {
    // Added up here and told when somebody looks: prom-client takes longer over one than most of what is counted.
    const sums = new Series(entry, (labels) => ({ labels, sum: 0 }));
    const collect = () => {
      counter.reset();
      for (const { labels, sum } of sums) counter.inc(labels, sum);
    };
    const counter = new Counter({ ...this.#settings(entry), collect });
    return (value, ...labels) => {
      sums.of(labels).sum += value;
    };
  }

  #histogram(entry: MetricEntry): Note {
    const buckets = [...(entry.buckets ?? [])];
    const histogram = new Histogram({ ...this.#settings(entry), buckets });
    const all = new Series(entry, (labels) => {
      histogram.zero(labels);
      return histogram.labels(labels);
    });
    return (value, ...labels) => all.of(labels).observe(value);
  }

  #gauge(entry: MetricEntry): Note {
    const { ask, countsDown, addsUp } = entry;
    const note: Note = (value, ...labels) => gauge.set(bounded(entry, labels), value);
    const countdown = countsDown && new Countdown(this.#clock);
    const collect = () => {
      // What is not there any more is not told of either.
      if (ask !== undefined) gauge.reset();
      ask?.(this.#asked, note);
      countdown?.tell(note);
    };
    const gauge = new Gauge({ ...this.#settings(entry), collect });
    const lists = Object.values(entry.labels).map((values) => values ?? []);
    if (ask === undefined) for (const labels of combinations(lists)) note(0, ...labels);
    if (addsUp) return sumUp(entry, note);
    return countdown === undefined ? note : (...noted) => countdown.begin(...noted);
  }

  #settings({ name, help, labels }: MetricEntry) {
    const labelNames = Object.keys(labels);
    return { name: PREFIX + name, help, labelNames, registers: [this.#registry] };
  }

  #count({ path, method, status, tookMs }: Answered): void {
    const route = path ?? 'none';
    this.#note('http_requests_total')(1, route, method, String(status));
    this.#note('http_request_duration_seconds')(tookMs / 1_000, route, method);
  }
}

/** A resumption may be of what stalled before anybody counted. */
function sumUp(entry: MetricEntry, note: Note): Note {
  const sums = new Series(entry, () => ({ sum: 0 }));
  return (value, ...labels) => {
    const series = sums.of(labels);
    series.sum = Math.max(0, series.sum + value);
    note(series.sum, ...labels);
  };
}

/** What is less by every second. */
class Countdown {
  readonly #clock: Clock;
  readonly #ends = new Map<string, { readonly labels: readonly string[]; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(seconds: number, ...labels: readonly string[]): void {
    const atMs = this.#clock.monotonicMs() + seconds * 1_000;
    this.#ends.set(labels.join(), { labels, atMs });
  }

  tell(note: Note): void {
    const nowMs = this.#clock.monotonicMs();
    for (const { labels, atMs } of this.#ends.values())
      note(Math.max(0, atMs - nowMs) / 1_000, ...labels);
  }
}

type Labels = { [label: string]: string };

/** What is kept per combination of labels. There from the start where it is known which there can be. */
class Series<T> implements Iterable<T> {
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

function keyOf(values: readonly string[]): string {
  return values.length === 1 ? (values[0] ?? '') : values.join('\n');
}

/** Labels of which none has a value that somebody made up. */
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
