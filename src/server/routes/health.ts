/** For whoever runs this: does it live, can it take work, how is it doing. */
import { z } from 'zod';
import { Problem } from '../http/problem.ts';
import { type Route, route } from '../http/route.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Readiness } from '../readiness.ts';

export interface HealthParts {
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  /** Whether anybody may see the metrics; default: who has a token. */
  readonly metricsAccess: 'open' | 'v3:read';
}

/** When to ask again. */
const RETRY_MS = 1_000;

export function healthRoutes(parts: HealthParts): Route[] {
  return [healthRoute(), readyRoute(parts), metricsRoute(parts)];
}

function healthRoute(): Route {
  return route({
    method: 'GET',
    path: '/healthz',
    access: 'open',
    tenants: 'yes',
    group: 'operation',
    summary: 'Does it live?',
    description: 'The process serves requests. Nobody else is asked, least of all the store.',
    answers: { 200: { description: 'It does.', body: z.object({ alive: z.literal(true) }) } },
    problems: [],
    async handle() {
      return { body: { alive: true } };
    },
  });
}

function readyRoute({ readiness }: HealthParts): Route {
  return route({
    method: 'GET',
    path: '/readyz',
    access: 'open',
    tenants: 'yes',
    group: 'operation',
    summary: 'Can it take work?',
    description:
      'Fails when this instance could not take work, and says why in `reasons`: the store does not answer, it is closing, its poller or its worker is stalled or has stopped. ' +
      'What the store says is good for a second, however many ask.',
    answers: { 200: { description: 'It can.', body: z.object({ ready: z.literal(true) }) } },
    problems: ['not-ready'],
    async handle() {
      const reasons = await readiness.reasons();
      if (reasons.length === 0) return { body: { ready: true } };
      throw new Problem('not-ready', {
        detail: `It can not take work now: ${reasons.join('; ')}.`,
        retryAfterMs: RETRY_MS,
        facts: { reasons },
      });
    },
  });
}

function metricsRoute({ metrics, metricsAccess }: HealthParts): Route {
  return route({
    method: 'GET',
    path: '/metrics',
    access: metricsAccess,
    tenants: 'no',
    group: 'operation',
    summary: 'Metrics',
    description:
      'Events of this instance by name; leases held, lost, refused and handed over, how long renewals take and how near the first loss is; polls, actions, intents, sessions and pipelines; what the store does to it; requests by route; and the process itself. `docs/metrics.md` has all of them.',
    answers: {
      200: { description: 'In the text format of Prometheus.', mediaType: 'text/plain' },
    },
    problems: [],
    async handle() {
      const text = await metrics.text();
      return new Response(text, { headers: { 'Content-Type': metrics.contentType } });
    },
  });
}
