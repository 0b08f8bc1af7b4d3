/** What is there to see how things are: events, health, metrics, members, leases, and the description of all of it. */
import { EventHub, type EventHubOptions } from './event-hub.ts';
import { Metrics } from './metrics.ts';
import type { ServerParts } from './parts.ts';
import { Readiness } from './readiness.ts';
import type { Route } from './route.ts';
import { documentRoutes } from './routes/documents.ts';
import { eventRoutes } from './routes/events.ts';
import { fleetRoutes } from './routes/fleet.ts';
import { healthRoutes } from './routes/health.ts';
import { leaseRoutes } from './routes/leases.ts';

export interface ObservationOptions {
  /** How many may watch events, and how far behind they may be. */
  events?: EventHubOptions;
  /** `open`: `/metrics` is for everybody who reaches this server; default: for those with a token. */
  metrics?: 'open' | 'token';
}

export interface Observation {
  readonly routes: readonly Route[];
  /** For others in this process to say when it can not take work. */
  readonly readiness: Readiness;
}

/** `table` gives all routes there are, once they are there. Ends with `parts.closing`. */
export function observe(
  parts: ServerParts,
  { events = {}, metrics: access = 'token' }: ObservationOptions,
  table: () => readonly Route[],
): Observation {
  const { holdfast, clock, closing, observers } = parts;
  const hub = new EventHub({ log: holdfast.log, clock, options: events });
  const readiness = new Readiness({ holdfast, clock, closing });
  const metrics = new Metrics({ holdfast, hub, observers });
  const close = () => {
    for (const part of [hub, readiness, metrics]) part.close();
  };
  closing.addEventListener('abort', close, { once: true });
  const metricsAccess = access === 'open' ? 'open' : 'v3:read';
  const routes = [
    ...eventRoutes({ hub }),
    ...fleetRoutes({ holdfast }),
    ...leaseRoutes({ holdfast }),
    ...healthRoutes({ readiness, metrics, metricsAccess }),
    ...documentRoutes(table),
  ];
  return { routes, readiness };
}
