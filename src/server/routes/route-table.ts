/** All routes of the server, in the order in which they are described. */
import type { PageReader } from '../dashboard-files.ts';
import type { Stage } from '../demo-stage.ts';
import type { EntryPasses } from '../http/entry-passes.ts';
import type { Route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';
import { aboutRoutes } from './about.ts';
import { deadLetterRoutes } from './dead-letters.ts';
import { doctorRoutes } from './doctor.ts';
import { documentRoutes } from './documents.ts';
import { enterRoutes } from './enter.ts';
import { eventRoutes } from './events.ts';
import { fleetRoutes } from './fleet.ts';
import { healthRoutes } from './health.ts';
import { historyRoutes } from './history.ts';
import { intentRoutes } from './intents.ts';
import { leaseHoldingRoutes } from './lease-holding.ts';
import { leaseRoutes } from './leases.ts';
import { memberRoutes } from './members.ts';
import { pageRoutes } from './page.ts';
import { reportRoutes } from './report.ts';
import { sessionRoutes } from './sessions.ts';
import { slotRoutes } from './slots.ts';
import { stageRoutes } from './stage.ts';
import { targetRoutes } from './targets.ts';
import { workflowRoutes } from './workflows.ts';

export interface RouteOptions {
  /** `open`: `/metrics` needs no token; default: it needs one with the scope v3:read. */
  metrics?: 'open' | 'token';
  /** Instances of the demo, which its page may kill and freeze; default none, without routes. */
  stage?: Stage;
}

export function routeTable(
  server: ServerContext,
  { metrics, stage }: RouteOptions,
  page: { readonly read: PageReader; readonly passes: EntryPasses | null },
): readonly Route[] {
  const routes: readonly Route[] = [
    intentRoutes(server),
    sessionRoutes(server),
    aboutRoutes(server, { hasStage: stage !== undefined }),
    eventRoutes(server),
    historyRoutes(server),
    reportRoutes(server),
    memberRoutes(server),
    fleetRoutes(server),
    targetRoutes(server),
    leaseRoutes(server),
    leaseHoldingRoutes(server),
    workflowRoutes(server),
    deadLetterRoutes(server),
    slotRoutes(server),
    doctorRoutes(server),
    stage === undefined ? [] : stageRoutes(stage),
    healthRoutes(server, metrics === 'open' ? 'open' : 'v3:read'),
    documentRoutes(() => routes),
    enterRoutes(page.passes),
    pageRoutes(page.read),
  ].flat();
  return routes;
}
