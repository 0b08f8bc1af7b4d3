/** What is there to see how things are: events, health, metrics, members, leases, and the description of all of it. */

import type { Stage } from './demo-stage.ts';
import type { Route } from './http/route.ts';
import { Metrics } from './metrics/metrics.ts';
import type { ServerParts } from './parts.ts';
import { Readiness } from './readiness.ts';
import { aboutRoute } from './routes/about.ts';
import { deadLetterRoutes } from './routes/dead-letters.ts';
import { doctorRoute } from './routes/doctor.ts';
import { documentRoutes } from './routes/documents.ts';
import { eventRoutes } from './routes/events.ts';
import { fleetRoutes } from './routes/fleet.ts';
import { healthRoutes } from './routes/health.ts';
import { historyRoute } from './routes/history.ts';
import { leaseRoutes } from './routes/leases.ts';
import { pictureRoutes } from './routes/picture.ts';
import { slotRoute } from './routes/slots.ts';
import { stageRoutes } from './routes/stage.ts';
import { targetRoutes } from './routes/targets.ts';
import { workflowRoutes } from './routes/workflows.ts';
import { EventHub, type EventHubOptions } from './streams/event-hub.ts';
import { FleetHub } from './streams/fleet-hub.ts';

export interface ObservationOptions {
  /** How many may watch events, and how far behind they may be. */
  events?: EventHubOptions;
  /** `open`: `/metrics` is for everybody who reaches this server; default: for those with a token. */
  metrics?: 'open' | 'token';
  /** Instances that may be killed and frozen for show; default none, and no routes for it. */
  stage?: Stage;
}

export interface Observation {
  readonly routes: readonly Route[];
  /** For others in this process to say when it can not take work. */
  readonly readiness: Readiness;
}

/** `table` gives all routes there are, once they are there. Ends with `parts.closing`. */
export function observe(
  parts: ServerParts,
  { events = {}, metrics: access = 'token', stage }: ObservationOptions,
  table: () => readonly Route[],
): Observation {
  const { holdfast, intents, clock, closing, observers } = parts;
  const hub = new EventHub({ log: holdfast.log, clock, options: events });
  const { fleet } = holdfast;
  const fleetHub = new FleetHub({ fleet, clock, options: events });
  const readiness = new Readiness({ holdfast, clock, closing });
  const metrics = new Metrics({ holdfast, clock, server: { hub, observers } });
  const close = () => {
    for (const part of [hub, fleetHub, readiness, metrics]) part.close();
  };
  closing.addEventListener('abort', close, { once: true });
  const metricsAccess = access === 'open' ? 'open' : 'v3:read';
  const routes = [
    aboutRoute(parts, stage !== undefined),
    ...eventRoutes({ hub }),
    historyRoute(holdfast),
    ...fleetRoutes({ holdfast }),
    ...pictureRoutes({ fleet, hub: fleetHub }),
    ...targetRoutes({ holdfast }),
    ...leaseRoutes({ holdfast, intents }),
    ...workflowRoutes({ holdfast }),
    ...deadLetterRoutes({ holdfast }),
    slotRoute({ holdfast, intents }),
    doctorRoute(parts),
    ...(stage === undefined ? [] : stageRoutes(stage)),
    ...healthRoutes({ readiness, metrics, metricsAccess }),
    ...documentRoutes(table),
  ];
  return { routes, readiness };
}
