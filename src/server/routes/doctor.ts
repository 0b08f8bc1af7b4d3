/** How the store and the fleet are, and what to do about it. */
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { type Diagnosis, diagnose } from '../../diagnosis.ts';
import { type Route, route } from '../http/route.ts';
import type { ServerParts } from '../parts.ts';

/** It asks a lot of the store: a thousand who want to know are one who asks. */
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
      .meta({ description: 'Of this instance to the store.' }),
    clock: z
      .object({ offsetMs: z.number(), uncertaintyMs: z.number() })
      .nullable()
      .meta({ description: 'How far the store’s clock is from ours; null: they are the same.' }),
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

export function doctorRoute({ holdfast, clock }: ServerParts): Route {
  const recent = reused(() => diagnose(holdfast, clock, { tryOut: false }), clock);
  return route({
    method: 'GET',
    path: '/api/v3/doctor',
    access: 'v3:read',
    tenants: 'no',
    group: 'operation',
    summary: 'Is everything as it should be?',
    description:
      'The store as it says it is, its clock, how long it takes to answer, how much room instances have to renew; and what to do where something is not as it should be. ' +
      `What is found is good for ${REUSE_MS / 1_000} seconds, however many ask.`,
    answers: { 200: { description: 'What was found.', body: diagnosisSchema } },
    problems: [],
    async handle() {
      return { body: await recent() };
    },
  });
}

/** While it is being found out nobody asks a second time; what has failed is not told again. */
function reused(find: () => Promise<Diagnosis>, clock: Clock): () => Promise<Diagnosis> {
  let last: { readonly found: Promise<Diagnosis>; freshUntilMs: number } | null = null;
  return () => {
    if (last !== null && clock.monotonicMs() < last.freshUntilMs) return last.found;
    const begun = { found: find(), freshUntilMs: Number.POSITIVE_INFINITY };
    last = begun;
    begun.found.then(
      () => {
        begun.freshUntilMs = clock.monotonicMs() + REUSE_MS;
      },
      () => {
        begun.freshUntilMs = 0;
      },
    );
    return begun.found;
  };
}
