import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Holdfast, open } from '../../src/index.ts';
import { createMetrics, recordMetrics } from '../../src/server/index.ts';

/** Collects when it is asked to. */
class ManualReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

async function recorded(): Promise<{ holdfast: Holdfast; text(): Promise<string> }> {
  const reader = new ManualReader();
  const provider = new MeterProvider({ readers: [reader] });
  const holdfast = await open('memory:');
  const recording = recordMetrics(holdfast, provider.getMeter('holdfast'));
  onTestFinished(async () => {
    recording.close();
    await holdfast.close();
    await provider.shutdown();
  });
  return {
    holdfast,
    async text() {
      const { resourceMetrics, errors } = await reader.collect();
      expect(errors).toEqual([]);
      return new PrometheusSerializer('', false).serialize(resourceMetrics);
    },
  };
}

/** Series of a text in the format of Prometheus, by name and labels, without the scope's labels. */
function seriesOf(text: string): Map<string, number> {
  const lines = text.matchAll(/^(holdfast_\w+)(?:\{([^}]*)\})? (\S+)/gm);
  return new Map(
    [...lines].map(([, name = '', labels = '', value]) => {
      const own = labels.split(',').filter((label) => label !== '' && !label.startsWith('otel_'));
      return [`${name}{${own.sort().join()}}`, Number(value)];
    }),
  );
}

describe('metrics through OpenTelemetry', () => {
  it('have the names, labels and values that Prometheus is given directly', async () => {
    const { holdfast, text } = await recorded();
    const metrics = createMetrics(holdfast);
    onTestFinished(() => metrics.close());
    await holdfast.withLease('report', async () => {});
    const other = await holdfast.acquire('report');
    expect(other.ok).toBe(true);
    const direct = seriesOf(await metrics.text());
    const through = seriesOf(await text());
    const ofHoldfast = [...direct].filter(
      ([name, value]) => value > 0 && !/^holdfast_(process|nodejs)_|_bucket|_sum/.test(name),
    );
    expect(ofHoldfast.length).toBeGreaterThan(5);
    for (const [name, value] of ofHoldfast) {
      const found = through.get(name);
      if (/_seconds\{/.test(name)) expect(found, name).toBeGreaterThan(0);
      else expect(found, name).toBe(value);
    }
  });

  it('begin every known series of a counter at 0, so that its first rise is seen', async () => {
    const { text } = await recorded();
    const series = seriesOf(await text());
    expect(series.get('holdfast_refusals_total{code="FENCE_STALE"}')).toBe(0);
    expect(series.get('holdfast_stalled{part="worker"}')).toBe(0);
  });

  it('end with close: neither counters nor gauges are recorded any more', async () => {
    const reader = new ManualReader();
    const provider = new MeterProvider({ readers: [reader] });
    const holdfast = await open('memory:');
    const recording = recordMetrics(holdfast, provider.getMeter('holdfast'));
    recording.close();
    await holdfast.withLease('report', async () => {});
    await holdfast.close();
    const { resourceMetrics } = await reader.collect();
    const text = new PrometheusSerializer('', false).serialize(resourceMetrics);
    const series = seriesOf(text);
    expect(series.get('holdfast_leases_acquired_total{class="lease"}')).toBe(0);
    expect(series.has('holdfast_leases_held{class="lease"}')).toBe(false);
    await provider.shutdown();
  });

  it('refuse what is no meter, and say where one comes from', async () => {
    const holdfast = await open('memory:');
    onTestFinished(() => holdfast.close());
    expect(() => recordMetrics(holdfast, {} as never)).toThrow(/meter.*metrics\.getMeter/s);
  });
});
