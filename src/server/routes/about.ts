import { z } from 'zod';
import { packageVersion } from '../../core/version.ts';
import { withoutCredentials } from '../../telemetry/facts.ts';
import { type Route, route, SCOPES } from '../http/route.ts';
import type { ServerParts } from '../parts.ts';

export const aboutSchema = z
  .object({
    scope: z.enum(SCOPES).meta({ description: 'What the token may do.' }),
    tokenId: z.string().meta({ description: 'Names the token where actions are written down.' }),
    tenant: z.string().nullable(),
    instance: z.string().meta({ description: 'The instance that answers.' }),
    version: z.string(),
    store: z.string().meta({ description: 'The store, without secrets.' }),
    now: z.number().int().meta({ description: 'By the clock of the instance, since 1970, in ms.' }),
    stage: z.literal(true).optional().meta({
      description: 'Present where instances can be killed and frozen for show.',
    }),
  })
  .meta({ id: 'About' });

/** Who asks, and whom. */
export function aboutRoute({ holdfast, clock }: ServerParts, hasStage: boolean): Route {
  const version = packageVersion();
  return route({
    method: 'GET',
    path: '/api/v3/about',
    access: 'v3:read',
    tenants: 'yes',
    group: 'operation',
    summary: 'Who asks, and whom',
    description: 'What the token may do, and which instance answers, on which store.',
    answers: { 200: { description: 'About both.', body: aboutSchema } },
    problems: [],
    async handle({ caller: { scope, tokenId, tenant } }) {
      return {
        body: {
          scope,
          tokenId,
          tenant,
          instance: holdfast.instanceId,
          version,
          store: withoutCredentials(holdfast.storeName),
          now: Math.round(clock.wallMs()),
          ...(hasStage && { stage: true }),
        },
      };
    },
  });
}
