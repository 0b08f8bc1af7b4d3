/** What happens here, counted, in the form Prometheus reads. A subscriber like any other: what is counted is what the event catalogue tells. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { EventName } from '../base/events.ts';
import { packageVersion } from '../base/version.ts';
import type { Holdfast } from '../holdfast.ts';
import { REASONS } from '../intents/intent-session.ts';
import { LEVELS } from '../telemetry/levels.ts';
import type { EventHub } from './event-hub.ts';
import type { Answered, RequestObserver } from './parts.ts';

export interface MetricsParts {
  readonly holdfast: Pick<Holdfast, 'on' | 'held' | 'running'>;
  readonly hub: Pick<EventHub, 'size'>;
  readonly observers: Set<RequestObserver>;
}

const PREFIX = 'holdfast_';
/** In seconds: from an answer out of memory to the longest that a store may take. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** A client can make up methods, and each would be counted for good. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'DELETE']);

export class Metrics {
  readonly #registry = new Registry();
  readonly #unsubscribes: (() => void)[] = [];
  #hasProcess = false;

  constructor({ holdfast, hub, observers }: MetricsParts) {
    this.#countEvents(holdfast);
    this.#countIntents(holdfast);
    this.#countEndings(holdfast);
    this.#countRequests(observers);
    this.#gauge('leases_held', 'Leases that this instance holds.', () => holdfast.held);
    this.#gauge(
      'sessions_running',
      'Sessions from intents that this instance has in hands.',
      () => holdfast.running,
    );
    this.#gauge('sse_clients', 'Clients that watch events through this instance.', () => hub.size);
    const build = new Gauge({
      ...{ name: `${PREFIX}build_info`, help: 'Always 1; the version is in its label.' },
      ...{ labelNames: ['version'], registers: [this.#registry] },
    });
    build.set({ version: packageVersion() }, 1);
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

  #countEvents(holdfast: MetricsParts['holdfast']): void {
    const events = this.#counter('events_total', 'What has happened to this instance.', ['event']);
    for (const name of Object.keys(LEVELS) as EventName[]) {
      events.inc({ event: name }, 0);
      // Told of each renewal of each lease only where somebody listens, and the batches say how many they were.
      if (name === 'lease.extended') continue;
      this.#unsubscribes.push(holdfast.on(name, () => events.inc({ event: name })));
    }
    this.#unsubscribes.push(
      holdfast.on('lease.renewed', ({ count }) => events.inc({ event: 'lease.extended' }, count)),
    );
  }

  #countIntents(holdfast: MetricsParts['holdfast']): void {
    const help = 'Intents that made sense, by what came of them here.';
    const intents = this.#counter('intents_total', help, ['type', 'result']);
    for (const result of ['accepted', 'replayed', 'refused'] as const) {
      const count = ({ type }: { type: string }) => intents.inc({ type, result });
      this.#unsubscribes.push(holdfast.on(`intent.${result}`, count));
    }
  }

  #countEndings(holdfast: MetricsParts['holdfast']): void {
    const help = 'Sessions from intents that this instance has ended, by the reason.';
    const ended = this.#counter('sessions_ended_total', help, ['reason']);
    for (const reason of REASONS) ended.inc({ reason }, 0);
    const count = ({ state, reason }: { state: string; reason: string | null }) => {
      if (state === 'ENDED' && reason !== null) ended.inc({ reason });
    };
    this.#unsubscribes.push(holdfast.on('session.advanced', count));
  }

  #countRequests(observers: Set<RequestObserver>): void {
    const labels = ['route', 'method', 'status'];
    const requests = this.#counter('http_requests_total', 'Requests answered.', labels);
    const durations = new Histogram({
      ...{ name: `${PREFIX}http_request_duration_seconds`, buckets: BUCKETS },
      help: 'From the arrival of a request until its answer was known.',
      ...{ labelNames: ['route', 'method'], registers: [this.#registry] },
    });
    observers.add(({ path, method: asked, status, tookMs }: Answered) => {
      const route = path ?? 'none';
      const method = METHODS.has(asked) ? asked : 'other';
      requests.inc({ route, method, status });
      durations.observe({ route, method }, tookMs / 1_000);
    });
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      ...{ name: PREFIX + name, help, registers: [this.#registry] },
      collect() {
        this.set(value());
      },
    });
  }
}
