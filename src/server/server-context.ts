import type { Clock } from '../core/clock.ts';
import type { Random } from '../core/random.ts';
import type { Holdfast } from '../holdfast.ts';
import type { Intents } from '../intents/intents.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { Readiness } from './readiness-state.ts';
import type { EventStream } from './streams/event-stream.ts';
import type { FleetStream } from './streams/fleet-stream.ts';

/** What the routes of one app share. `createApp` makes it; routes take it as first argument. */
export interface ServerContext {
  readonly holdfast: Holdfast;
  readonly intents: Intents;
  readonly clock: Clock;
  readonly random: Random;
  /** Fires when the server closes: streams and other long answers end then. */
  readonly closing: AbortSignal;
  /** `/api/v3/events` */
  readonly eventStream: EventStream;
  /** `/api/v3/fleet/live` */
  readonly fleetStream: FleetStream;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
}

/** One request after its response is known, for metrics. */
export interface AnsweredRequest {
  /** The path in the route table, not the path of the URL; null where no route matched. */
  readonly path: string | null;
  readonly method: string;
  readonly status: number;
  readonly tookMs: number;
}
