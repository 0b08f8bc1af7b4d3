/**
 * Metrics in Prometheus format. A subscriber of events: `metric-catalogue.ts` lists the metrics and
 * the events that feed them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Clock, systemClock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { checkKnown } from '../../core/options.ts';
import { packageVersion } from '../../core/version.ts';
import type { Holdfast } from '../../holdfast.ts';
import type { AnsweredRequest } from '../server-context.ts';
import type { EventStream } from '../streams/event-stream.ts';
import {
  type GaugeSource,
  METRICS,
  type MetricEntry,
  type Observe,
  PREFIX,
} from './metric-catalogue.ts';
import { GaugeSet, SeriesSet } from './series-set.ts';

/** A name of a label, as Prometheus has them. */
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

export interface MetricsOptions {
  clock?: Clock;
}

/** For a program with a server of its own: counts the events of `holdfast` from now on. */
export function createMetrics(holdfast: Holdfast, options: MetricsOptions = {}): Metrics {
  checkKnown(options, new Set(['clock']));
  return new Metrics(holdfast, options.clock ?? systemClock);
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #observers = new Map<string, Observe>();
  readonly #unsubscribes: (() => void)[] = [];
  readonly #clock: Clock;
  readonly #gauges: GaugeSource;
  #hasProcess = false;

  /** `eventStream`: of the server in this process; null without a server. */
  constructor(
    holdfast: Pick<Holdfast, 'on' | 'census' | 'running'>,
    clock: Clock,
    eventStream: Pick<EventStream, 'size'> | null = null,
    labels: Readonly<Record<string, string>> = {},
  ) {
    for (const name of Object.keys(labels)) if (!LABEL.test(name)) throw notALabel(name);
    this.#registry.setDefaultLabels(labels);
    this.#clock = clock;
    this.#gauges = {
      census: () => holdfast.census(),
      get running() {
        return holdfast.running;
      },
      get watching() {
        return eventStream?.size ?? 0;
      },
    };
    for (const entry of METRICS) {
      if (entry.isServers && eventStream === null) continue;
      const observe = this.#make(entry);
      this.#observers.set(entry.name, observe);
      for (const feed of entry.feeds) this.#unsubscribes.push(feed.subscribe(holdfast, observe));
    }
    this.#observe('build_info', 1, packageVersion());
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All metrics, in the text format. */
  text(): Promise<string> {
    // Metrics of the process need observers and a timer, so they start with the first scrape.
    if (!this.#hasProcess) collectDefaultMetrics({ register: this.#registry, prefix: PREFIX });
    this.#hasProcess = true;
    return this.#registry.metrics();
  }

  /** Stops counting. */
  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
  }

  /** Called by the server for every request. */
  recordRequest({ path, method, status, tookMs }: AnsweredRequest): void {
    const route = path ?? 'none';
    this.#observe('http_requests_total', 1, route, method, String(status));
    this.#observe('http_request_duration_seconds', tookMs / 1_000, route, method);
  }

  #observe(name: string, value: number, ...labels: readonly string[]): void {
    this.#observers.get(name)?.(value, ...labels);
  }

  #make(entry: MetricEntry): Observe {
    if (entry.type === 'histogram') return this.#histogram(entry);
    return entry.type === 'counter' ? this.#counter(entry) : this.#gauge(entry);
  }

  #counter(entry: MetricEntry): Observe {
    // Summed here and passed to prom-client at a scrape: one `inc` takes longer than most counted
    // operations.
    const sums = new SeriesSet(entry, (labels) => ({ labels, sum: 0 }));
    const collect = () => {
      counter.reset();
      for (const { labels, sum } of sums) counter.inc(labels, sum);
    };
    const counter = new Counter({ ...this.#settings(entry), collect });
    return (value, ...labels) => {
      sums.of(labels).sum += value;
    };
  }

  #histogram(entry: MetricEntry): Observe {
    const buckets = [...(entry.buckets ?? [])];
    const histogram = new Histogram({ ...this.#settings(entry), buckets });
    const all = new SeriesSet(entry, (labels) => {
      histogram.zero(labels);
      return histogram.labels(labels);
    });
    return (value, ...labels) => all.of(labels).observe(value);
  }

  #gauge(entry: MetricEntry): Observe {
    const series = new GaugeSet(entry, this.#clock, this.#gauges);
    const collect = () => {
      gauge.reset();
      series.collect((value, labels) => gauge.set(labels, value));
    };
    const gauge = new Gauge({ ...this.#settings(entry), collect });
    return series.observe;
  }

  #settings({ name, help, labels }: MetricEntry) {
    const labelNames = Object.keys(labels);
    return { name: PREFIX + name, help, labelNames, registers: [this.#registry] };
  }
}

function notALabel(name: string): ConfigError {
  const rule = 'a name has letters, digits and _, and does not begin with a digit';
  return new ConfigError({ field: 'metricLabels', value: name, rule });
}
