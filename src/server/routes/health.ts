/** Liveness, readiness and metrics. */
import { z } from 'zod';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';

const RETRY_MS = 1_000;

export function healthRoutes(server: ServerContext, metricsAccess: 'open' | 'v3:read'): Route[] {
  return [healthRoute(), readyRoute(server), metricsRoute(server, metricsAccess)];
}

function healthRoute(): Route {
  return route({
    method: 'GET',
    path: '/healthz',
    access: 'open',
    tenants: 'yes',
    group: 'operation',
    summary: 'Liveness',
    description: 'Succeeds while the process serves requests. It does not use the store.',
    responses: {
      200: { description: 'The process is alive.', body: z.object({ alive: z.literal(true) }) },
    },
    problems: [],
    async handle() {
      return { body: { alive: true } };
    },
  });
}

function readyRoute({ readiness }: ServerContext): Route {
  return route({
    method: 'GET',
    path: '/readyz',
    access: 'open',
    tenants: 'yes',
    group: 'operation',
    summary: 'Readiness',
    description:
      'Fails while this instance cannot take work, with the causes in `reasons`: the store does not answer, the instance is closing, or its poller or worker is stalled or has stopped. ' +
      'The result of the store is reused for a second.',
    responses: {
      200: {
        description: 'The instance can take work.',
        body: z.object({ ready: z.literal(true) }),
      },
    },
    problems: ['not-ready'],
    async handle() {
      const reasons = await readiness.reasons();
      if (reasons.length === 0) return { body: { ready: true } };
      throw new Problem('not-ready', {
        detail: `This instance cannot take work: ${reasons.join('; ')}.`,
        retryAfterMs: RETRY_MS,
        facts: { reasons },
      });
    },
  });
}

function metricsRoute({ metrics }: ServerContext, access: 'open' | 'v3:read'): Route {
  return route({
    method: 'GET',
    path: '/metrics',
    access,
    tenants: 'no',
    group: 'operation',
    summary: 'Metrics',
    description:
      'Metrics of this instance: events by name; leases held, lost, refused and handed over; renewal times and the nearest deadline; polls, actions, intents, sessions and pipelines; the store; requests by route; and the process. `docs/reference/metrics.md` lists all of them.',
    responses: {
      200: { description: 'In the Prometheus text format.', mediaType: 'text/plain' },
    },
    problems: [],
    async handle() {
      const text = await metrics.text();
      return new Response(text, { headers: { 'Content-Type': metrics.contentType } });
    },
  });
}
