/** Findings about the store and the fleet, with advice. */
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { type Diagnosis, diagnose } from '../../diagnosis.ts';
import { type Route, route } from '../http/route.ts';
import type { ServerContext } from '../server-context.ts';

/** A diagnosis makes many requests to the store, so all clients share one for this long. */
const REUSE_MS = 2_000;

export const diagnosisSchema = z
  .object({
    store: z.string(),
    at: z.number().int().meta({ description: 'Milliseconds since 1970.' }),
    findings: z.array(
      z.object({
        level: z.enum(['ok', 'warn', 'refuse']),
        subject: z.string(),
        fact: z.string(),
        advice: z.string().optional(),
      }),
    ),
    roundTrip: z
      .object({ reads: z.number().int(), p50Ms: z.number(), p99Ms: z.number() })
      .nullable()
      .meta({ description: 'From this instance to the store.' }),
    clock: z.object({ offsetMs: z.number(), uncertaintyMs: z.number() }).nullable().meta({
      description: 'Offset of the store’s clock from ours; null where they are the same.',
    }),
    members: z.array(
      z.object({
        id: z.string(),
        marginMs: z.number().nullable().meta({
          description: 'What a slow renewal leaves of the TTL.',
        }),
        renewP99Ms: z.number().nullable(),
        ttlMs: z.number().nullable(),
        loopDelayMs: z.number().nullable(),
      }),
    ),
  })
  .meta({ id: 'Diagnosis' });

export function doctorRoutes({ holdfast, clock }: ServerContext): Route[] {
  const recent = reuse(() => diagnose(holdfast, clock, { tryOut: false }), clock);
  return [
    route({
      method: 'GET',
      path: '/api/v3/doctor',
      access: 'v3:read',
      tenants: 'no',
      group: 'operation',
      summary: 'Check the store and the fleet',
      description:
        'The store’s settings, its clock, its response times, and the safety margins of all instances, with advice for each problem. ' +
        `A diagnosis is reused for ${REUSE_MS / 1_000} seconds.`,
      responses: { 200: { description: 'The findings.', body: diagnosisSchema } },
      problems: [],
      async handle() {
        return { body: await recent() };
      },
    }),
  ];
}

/** Runs `find` at most once at a time, and reuses its result. A failure is not reused. */
function reuse(find: () => Promise<Diagnosis>, clock: Clock): () => Promise<Diagnosis> {
  let last: { readonly found: Promise<Diagnosis>; freshUntilMs: number } | null = null;
  return () => {
    if (last !== null && clock.monotonicMs() < last.freshUntilMs) return last.found;
    const started = { found: find(), freshUntilMs: Number.POSITIVE_INFINITY };
    last = started;
    started.found.then(
      () => {
        started.freshUntilMs = clock.monotonicMs() + REUSE_MS;
      },
      () => {
        started.freshUntilMs = 0;
      },
    );
    return started.found;
  };
}
