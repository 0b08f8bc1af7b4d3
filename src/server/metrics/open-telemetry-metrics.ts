/**
 * The same metrics through OpenTelemetry. The caller passes a meter of its SDK, so that Holdfast
 * needs no package for it. An exporter to Prometheus gives them the names that `metrics.ts` uses.
 */
import { type Clock, systemClock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { packageVersion } from '../../core/version.ts';
import type { Holdfast } from '../../holdfast.ts';
import { type GaugeSource, METRICS, type MetricEntry, type Observe } from './metric-catalogue.ts';
import { GaugeSet, type Labels, SeriesSet } from './series-set.ts';

/** Exporters to Prometheus add it to the name of a counter. */
const SUFFIX = /_total$/;

/** What Holdfast calls of a `Meter` of `@opentelemetry/api`. */
export interface MetricsMeter {
  createCounter(
    name: string,
    options: MeterOptions,
  ): { add(value: number, attributes: Labels): void };
  createHistogram(
    name: string,
    options: MeterOptions & { advice: { explicitBucketBoundaries: number[] } },
  ): { record(value: number, attributes: Labels): void };
  createObservableGauge(name: string, options: MeterOptions): ObservableGauge;
}

export interface MeterOptions {
  readonly description: string;
  readonly unit: string;
}

export interface ObservableGauge {
  addCallback(callback: GaugeCallback): void;
  removeCallback(callback: GaugeCallback): void;
}

export type GaugeCallback = (result: { observe(value: number, attributes: Labels): void }) => void;

/** Records the metrics of `holdfast` with this meter from now on, until `close()`. */
export function recordMetrics(holdfast: Holdfast, meter: MetricsMeter): { close(): void } {
  if (typeof meter?.createCounter !== 'function')
    throw new ConfigError({
      field: 'meter',
      value: meter,
      rule: "a meter of OpenTelemetry's API, such as metrics.getMeter('holdfast')",
    });
  return new OpenTelemetryMetrics(holdfast, meter, systemClock);
}

class OpenTelemetryMetrics {
  readonly #meter: MetricsMeter;
  readonly #clock: Clock;
  readonly #source: GaugeSource;
  readonly #stops: (() => void)[] = [];

  constructor(holdfast: Holdfast, meter: MetricsMeter, clock: Clock) {
    this.#meter = meter;
    this.#clock = clock;
    this.#source = {
      census: () => holdfast.census(),
      get running() {
        return holdfast.running;
      },
      watching: 0,
    };
    for (const entry of METRICS) {
      if (entry.isServers) continue;
      const observe = this.#make(entry);
      if (entry.name === 'build_info') observe(1, packageVersion());
      for (const feed of entry.feeds) this.#stops.push(feed.subscribe(holdfast, observe));
    }
  }

  /** Stops recording. */
  close(): void {
    for (const stop of this.#stops.splice(0)) stop();
  }

  #make(entry: MetricEntry): Observe {
    const name = `holdfast.${entry.name.replace(SUFFIX, '')}`;
    const unit = /_seconds(?:_total)?$/.test(entry.name) ? 's' : '1';
    const options = { description: entry.help, unit };
    if (entry.type === 'gauge') return this.#gauge(entry, name, options);
    // A series for each known combination of labels begins at 0, so that its first rise is seen.
    if (entry.type === 'counter') {
      const counter = this.#meter.createCounter(name, options);
      const series = new SeriesSet(entry, (labels) => {
        counter.add(0, labels);
        return labels;
      });
      return (value, ...labels) => counter.add(value, series.of(labels));
    }
    const advice = { explicitBucketBoundaries: [...(entry.buckets ?? [])] };
    const histogram = this.#meter.createHistogram(name, { ...options, advice });
    const series = new SeriesSet(entry, (labels) => labels);
    return (value, ...labels) => histogram.record(value, series.of(labels));
  }

  #gauge(entry: MetricEntry, name: string, options: MeterOptions): Observe {
    const series = new GaugeSet(entry, this.#clock, this.#source);
    const gauge = this.#meter.createObservableGauge(name, options);
    const callback: GaugeCallback = (result) =>
      series.collect((value, labels) => result.observe(value, labels));
    gauge.addCallback(callback);
    this.#stops.push(() => gauge.removeCallback(callback));
    return series.observe;
  }
}
